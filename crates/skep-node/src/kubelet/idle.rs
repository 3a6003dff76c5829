//! The end of connections on which nothing happens.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// A connection that nobody has used for so long is given up, as the kubelet does by default.
const LIMIT: Duration = Duration::from_hours(4);

/// When a connection was used last.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Instant>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Something has come or gone.
    pub(super) fn note(&self) {
        *self.0.lock() = Instant::now();
    }

    /// Waits until nothing has happened for too long.
    pub(super) async fn ceased(&self) {
        loop {
            let deadline = *self.0.lock() + LIMIT;
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_only_after_nothing_has_happened_for_long() {
        let activity = Activity::new();
        let begun = Instant::now();
        let use_it = async {
            tokio::time::sleep(LIMIT / 2).await;
            activity.note();
        };
        tokio::join!(use_it, activity.ceased());
        assert_eq!(begun.elapsed(), LIMIT / 2 + LIMIT);
    }
}
