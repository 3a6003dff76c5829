//! How often the operator has asked the API server for something, by its own metrics.

use std::ops::Sub;

/// Requests so far, or between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Watches aside.
    pub(super) requests: u64,
    pub(super) writes: u64,
    pub(super) lists: u64,
}

impl Counts {
    /// Reads them from the text format of Prometheus.
    pub(super) fn read(metrics: &str) -> Self {
        let mut counts = Self::default();
        for line in metrics.lines() {
            let Some(rest) = line.strip_prefix("skep_operator_api_requests_total{verb=\"") else { continue };
            let Some((verb, rest)) = rest.split_once('"') else { continue };
            let count: u64 = rest.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or_default();
            match verb {
                "watch" => continue,
                "list" => counts.lists += count,
                "get" => {}
                _ => counts.writes += count,
            }
            counts.requests += count;
        }
        counts
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            writes: self.writes - before.writes,
            lists: self.lists - before.lists,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read() {
        let text = "# HELP skep_operator_api_requests_total x\n\
            skep_operator_api_requests_total{verb=\"get\",resource=\"secrets\",code=\"200\"} 2\n\
            skep_operator_api_requests_total{verb=\"list\",resource=\"pods\",code=\"200\"} 3\n\
            skep_operator_api_requests_total{verb=\"patch\",resource=\"services\",code=\"201\"} 5\n\
            skep_operator_api_requests_total{verb=\"watch\",resource=\"pods\",code=\"200\"} 7\n";
        assert_eq!(Counts::read(text), Counts { requests: 10, writes: 5, lists: 3 });
    }
}
