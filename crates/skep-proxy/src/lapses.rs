//! Somebody who fails again and again while requests go on. That is told once and then now and then, with how often it was:
//! a line for each request would bury all others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// So often something is told at most.
pub(crate) const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Things of which it is told now and then how many there were.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    count: u64,
    told: Option<Instant>,
}

impl Untold {
    /// One more.
    pub(crate) fn add(&mut self) {
        self.count += 1;
    }

    /// How many there were since that was told, if it is to be told now.
    pub(crate) fn take(&mut self, pause: Duration) -> Option<u64> {
        if self.count == 0 { None } else { self.take_at(Instant::now(), pause) }
    }

    fn take_at(&mut self, now: Instant, pause: Duration) -> Option<u64> {
        if self.told.is_some_and(|told| now.duration_since(told) < pause) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// How somebody does who is asked for each request.
#[derive(Debug, Default)]
pub(crate) struct Lapses {
    untold: Mutex<Untold>,
    /// Whether it was told that something is wrong, and not yet that nothing is.
    is_told: AtomicBool,
}

impl Lapses {
    /// Something is wrong. How often it was since that was told, if it is to be told now.
    pub(crate) fn failed(&self) -> Option<u64> {
        self.failed_at(Instant::now(), 1)
    }

    /// The same of so many things at once, if there are any.
    pub(crate) fn failed_often(&self, times: u64) -> Option<u64> {
        if times == 0 { None } else { self.failed_at(Instant::now(), times) }
    }

    fn failed_at(&self, now: Instant, times: u64) -> Option<u64> {
        let mut untold = self.untold.lock();
        untold.count += times;
        let count = untold.take_at(now, TOLD_EVERY)?;
        self.is_told.store(true, Ordering::Relaxed);
        Some(count)
    }

    /// Nothing is wrong. Whether that is to be told.
    pub(crate) fn is_over(&self) -> bool {
        // It is asked for every request, and most of the time there is nothing to tell.
        self.is_told.load(Ordering::Relaxed) && self.is_told.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_told_once_and_then_now_and_then_and_so_is_its_end() {
        let (lapses, start) = (Lapses::default(), Instant::now());
        assert!(!lapses.is_over());
        assert_eq!(lapses.failed_at(start, 1), Some(1));
        let soon = start + TOLD_EVERY / 2;
        assert_eq!((lapses.failed_at(soon, 1), lapses.failed_at(soon, 1)), (None, None));
        assert_eq!(lapses.failed_at(start + TOLD_EVERY, 1), Some(3));
        assert!(lapses.is_over() && !lapses.is_over());
        // Whoever comes and goes is not told about each time either.
        assert_eq!(lapses.failed_at(start + TOLD_EVERY + TOLD_EVERY / 2, 1), None);
        assert!(!lapses.is_over());
        assert_eq!(lapses.failed_at(start + TOLD_EVERY * 2, 1), Some(2));
        assert!(lapses.is_over());
    }
}
