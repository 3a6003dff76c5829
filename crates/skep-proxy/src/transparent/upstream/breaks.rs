//! What the log tells of answers that break off: enough to look for the reason, however many they are.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fetch;

/// How long one line of the log counts for those that follow.
const SILENCE: Duration = Duration::from_secs(10);

/// Answers of one server that have broken off.
#[derive(Debug)]
pub(super) struct Breaks {
    /// The address of the server.
    origin: String,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    /// Those since then.
    untold: u64,
}

impl Breaks {
    pub(super) fn of(origin: String) -> Self {
        Self { origin, told: Mutex::default() }
    }

    /// An answer broke off.
    pub(super) fn tell(&self, error: &hyper::Error) {
        if let Some(before) = self.told.lock().note(Instant::now()) {
            let (address, error) = (&*self.origin, fetch::cause(error));
            tracing::warn!(address, error, before, "the answer of the MCP server broke off");
        }
    }
}

impl Told {
    /// One more; how many were not told before it, if it is to be told.
    fn note(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < SILENCE) {
            self.untold += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_told_once_in_a_while_and_counted() {
        let (mut told, now) = (Told::default(), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let noted = [0, 1, 9, 10, 11, 30, 31].map(|seconds| told.note(after(seconds)));
        assert_eq!(noted, [Some(0), None, None, Some(2), None, Some(1), None]);
    }
}
