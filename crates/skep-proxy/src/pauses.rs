//! How long to wait before something is tried again.

use std::time::Duration;

/// Pauses that grow: each is twice as long as the one before, up to the longest.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// Those before a stream that ended is opened again.
    pub(crate) fn of_streams() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(30))
    }

    /// Waits as long as it is time to.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(jittered(self.next)).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

/// Up to a fifth more, so that those who started together do not ask together.
fn jittered(pause: Duration) -> Duration {
    let part = uuid::Uuid::new_v4().as_bytes()[0];
    pause + pause / 5 * u32::from(part) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_the_longest_and_are_not_all_alike() {
        let mut pauses = Pauses::new(Duration::from_secs(1), Duration::from_secs(3));
        for expected in [1, 2, 3, 3] {
            let begun = tokio::time::Instant::now();
            pauses.pause().await;
            let (least, took) = (Duration::from_secs(expected), begun.elapsed());
            assert!(took >= least && took <= least + least / 5 + Duration::from_millis(1), "{took:?}");
        }
        let some: std::collections::HashSet<_> = (0..100).map(|_| jittered(Duration::from_secs(30))).collect();
        assert!(some.len() > 1);
    }
}
