//! How long a container that keeps failing has to wait.

use std::time::Duration;

/// The kubelet's rules: no wait at first, then one that doubles up to a limit; a good run clears the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffRules {
    pub first: Duration,
    pub longest: Duration,
}

impl Default for BackoffRules {
    fn default() -> Self {
        Self { first: Duration::from_secs(10), longest: Duration::from_mins(5) }
    }
}

/// The record of one container.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    rules: BackoffRules,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(rules: BackoffRules) -> Self {
        Self { rules, failures: 0 }
    }

    /// The wait before the next restart, after a run of this length. The first restart does not wait.
    pub(crate) fn after_run(&mut self, length: Duration) -> Duration {
        if length >= self.rules.longest.saturating_mul(2) {
            self.failures = 0;
        }
        let delay = match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => self.delay(doublings),
        };
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// The wait before the next attempt at something that never ran, such as a pull.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let delay = self.delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    fn delay(&self, doublings: u32) -> Duration {
        self.rules.first.saturating_mul(1_u32 << doublings.min(20)).min(self.rules.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_wait_longer_and_longer() {
        let mut backoff = Backoff::new(BackoffRules::default());
        let waits: Vec<u64> = (0..8).map(|_| backoff.after_run(Duration::from_secs(1)).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.after_run(Duration::from_mins(10)), Duration::ZERO);
        assert_eq!(backoff.after_run(Duration::ZERO).as_secs(), 10);
    }

    #[test]
    fn pulls_wait_at_once() {
        let mut backoff = Backoff::new(BackoffRules::default());
        let waits: Vec<u64> = (0..3).map(|_| backoff.after_failure().as_secs()).collect();
        assert_eq!(waits, [10, 20, 40]);
        backoff.reset();
        assert_eq!(backoff.after_failure().as_secs(), 10);
    }
}
