//! What a writer does while nothing can be written: it tells of it once, and tries again from time to time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::OpenError;
use super::event::Event;

/// How long the disk is left alone after a failure, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// To try is to read the whole file. It is left alone for so many times as long as that took.
const PAUSES: u32 = 10;
/// Trouble that comes and goes is told of once in this time.
const TELLING: Duration = Duration::from_mins(10);

/// Why nothing can be written, and what is to become of it.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) cause: Arc<str>,
    /// What was to be written. It may be on the disk or not.
    pub(super) uncertain: Vec<Event>,
    /// When to try again. None: that is no use before the store is opened anew.
    again: Option<Instant>,
    was_told: bool,
}

impl Trouble {
    pub(super) fn new(error: &OpenError, uncertain: Vec<Event>, telling: &mut Telling) -> Self {
        let was_told = telling.is_due();
        if was_told {
            tracing::error!("writes are refused until this is mended: {error}");
        }
        Self { cause: error.cause().into(), uncertain, again: Some(Instant::now() + PAUSE), was_told }
    }

    pub(super) fn is_to_be_tried(&self) -> bool {
        self.again.is_some_and(|again| again <= Instant::now())
    }

    /// It was tried, which took some time, and failed.
    pub(super) fn goes_on(&mut self, error: &OpenError, took: Duration) {
        self.again = Some(Instant::now() + PAUSE.max(took * PAUSES));
        if let OpenError::Uncertain { .. } = error {
            tracing::error!("writes are refused: {error}; {}", error.hint());
            self.again = None;
            self.cause = format!("{}; the server must be started again", error.cause()).into();
        }
    }

    /// Somebody who was told that it began is told that it is over.
    pub(super) fn ends(self) -> Vec<Event> {
        if self.was_told {
            tracing::warn!("writes are accepted again");
        }
        self.uncertain
    }
}

/// When people were told last.
#[derive(Debug, Default)]
pub(super) struct Telling(Option<Instant>);

impl Telling {
    fn is_due(&mut self) -> bool {
        let is_due = self.0.is_none_or(|last| last.elapsed() > TELLING);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_that_comes_and_goes_is_told_of_once() {
        let full = || OpenError::Unreadable { path: "store".into(), source: std::io::Error::other("full") };
        let mut telling = Telling::default();
        let begins = |telling: &mut Telling| Trouble::new(&full(), Vec::new(), telling).was_told;
        assert!(begins(&mut telling));
        assert!(!begins(&mut telling));
        telling.0 = telling.0.and_then(|last| last.checked_sub(2 * TELLING));
        assert!(begins(&mut telling));
    }

    #[test]
    fn what_the_disk_did_not_keep_is_not_tried_again() {
        let error = OpenError::Uncertain { path: "store".into() };
        let mut trouble = Trouble::new(&error, Vec::new(), &mut Telling::default());
        trouble.again = Some(Instant::now());
        assert!(trouble.is_to_be_tried());
        trouble.goes_on(&error, Duration::ZERO);
        assert!(!trouble.is_to_be_tried() && trouble.again.is_none());
        assert!(trouble.cause.ends_with("must be started again"));
    }
}
