//! How fast somebody may be asked: so many questions at once, and so many for each second.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// What endpoints are asked, unless something else is said.
const PER_SECOND: f64 = 100.0;
const AT_ONCE: f64 = 200.0;
/// Whoever would have to wait longer is refused.
const LONGEST: Duration = Duration::from_secs(5);

/// How fast.
#[derive(Debug)]
pub(super) struct Pace {
    per_second: f64,
    at_once: f64,
    /// What is left, and when that was. Less than nothing is left when some wait.
    left: Mutex<Option<(f64, Instant)>>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(PER_SECOND, AT_ONCE)
    }
}

impl Pace {
    pub(super) fn new(per_second: f64, at_once: f64) -> Self {
        Self { per_second, at_once, left: Mutex::default() }
    }

    /// Waits for a turn. Nothing when there are too many who wait already.
    pub(super) async fn turn(&self) -> Option<()> {
        let wait = self.reserve(Instant::now())?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Some(())
    }

    fn reserve(&self, now: Instant) -> Option<Duration> {
        let mut left = self.left.lock();
        let (before, at) = left.unwrap_or((self.at_once, now));
        let after = (before + (now - at).as_secs_f64() * self.per_second).min(self.at_once) - 1.0;
        let wait = Duration::try_from_secs_f64(-after / self.per_second).unwrap_or_default();
        if wait > LONGEST {
            return None;
        }
        *left = Some((after, now));
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_are_asked_at_once_and_so_many_each_second() {
        let (pace, start) = (Pace::default(), Instant::now());
        for _ in 0..200 {
            assert_eq!(pace.reserve(start), Some(Duration::ZERO));
        }
        assert_eq!(pace.reserve(start), Some(Duration::from_millis(10)));
        for _ in 0..499 {
            assert!(pace.reserve(start).is_some());
        }
        assert_eq!(pace.reserve(start), None);
        let later = start + Duration::from_secs(6);
        assert_eq!(pace.reserve(later), Some(Duration::ZERO));
        pace.turn().await.unwrap();
    }
}
