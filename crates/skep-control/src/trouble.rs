//! A watch that does not work: when it is tried again, and what is said about it.

use std::time::{Duration, Instant};

use kube::runtime::watcher;

use crate::worker::delay_after;

/// Short at first, because a kind that was just installed is served in a moment, and never longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After how much time without trouble the pauses are short again. A list that works says little: the watch after it may not.
const GOOD_TIME: Duration = Duration::from_mins(2);
/// Trouble that is over by then is not worth a word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often trouble that goes on is told.
const BETWEEN_TELLINGS: Duration = Duration::from_mins(5);

/// What is known about the trouble of one watch.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What is watched, as a path.
    place: String,
    failures: u32,
    began: Option<Instant>,
    last: Option<Instant>,
    told: Option<Instant>,
    is_told: bool,
}

impl Trouble {
    pub(crate) fn new(place: &str) -> Self {
        Self { place: place.to_owned(), failures: 0, began: None, last: None, told: None, is_told: false }
    }

    /// Something went wrong: waits until it is to be tried again.
    ///
    /// The pauses of kube's own watcher do not grow when a list is refused: it counts the attempt as a success.
    pub(crate) async fn pause(&mut self, error: &watcher::Error) {
        let (pause, is_to_be_told) = self.failed(Instant::now());
        let place = &self.place;
        if is_to_be_told {
            tracing::warn!(place, %error, hint = hint(error), "cannot be followed");
        } else {
            tracing::debug!(place, %error, ?pause, "watch interrupted");
        }
        tokio::time::sleep(pause).await;
    }

    /// Something was heard from the server, which is news to those who were told of the trouble.
    pub(crate) fn ends(&mut self) {
        if std::mem::take(&mut self.is_told) {
            tracing::info!(place = self.place, "followed again");
        }
    }

    /// How long to wait, and whether it is time to tell.
    fn failed(&mut self, now: Instant) -> (Duration, bool) {
        if self.last.is_none_or(|last| now.saturating_duration_since(last) > GOOD_TIME) {
            self.failures = 0;
            self.began = Some(now);
        }
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
        let has_lasted = self.began.is_some_and(|began| now.saturating_duration_since(began) >= PATIENCE);
        let was_told = self.told.is_some_and(|told| now.saturating_duration_since(told) < BETWEEN_TELLINGS);
        let is_to_be_told = has_lasted && !was_told;
        if is_to_be_told {
            self.told = Some(now);
            self.is_told = true;
        }
        (delay_after(self.failures).min(LONGEST_PAUSE), is_to_be_told)
    }
}

/// What to do about it, where that is known.
fn hint(error: &watcher::Error) -> &'static str {
    match code(error) {
        Some(401) => "the server does not know who asks: check the token or the certificate of the kubeconfig",
        Some(403) => "give whoever asks the right to list and watch these objects",
        Some(404) => "install the definition of this kind",
        _ => "it is tried again",
    }
}

fn code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn pauses_grow_and_are_short_again_after_a_good_time() {
        let mut trouble = Trouble::new("/api/v1/pods");
        let mut now = Instant::now();
        let mut asked = 0;
        let end = now + Duration::from_mins(10);
        while now < end {
            asked += 1;
            let (pause, _) = trouble.failed(now);
            assert!(pause <= LONGEST_PAUSE);
            // A list in between works, the watch does not.
            trouble.ends();
            now += pause;
        }
        assert!(asked < 75, "{asked} requests in ten minutes");
        now += GOOD_TIME;
        assert!(trouble.failed(now).0 < Duration::from_millis(100));
    }

    #[test]
    fn what_lasts_is_told_now_and_then_and_so_is_its_end() {
        let mut trouble = Trouble::new("/api/v1/pods");
        let begun = Instant::now();
        let mut told = |second: u64| trouble.failed(begun + Duration::from_secs(second)).1;
        assert_eq!(
            [0, 1, 2, 3, 60, 119, 200, 301, 303].map(&mut told),
            [false, false, true, false, false, false, false, false, true]
        );
        assert!(trouble.is_told);
        trouble.ends();
        assert!(!trouble.is_told);
        assert!(!trouble.failed(begun + Duration::from_secs(305)).1, "not again so soon");
    }

    #[test]
    fn refusals_say_what_to_do() {
        let refused = |code| {
            let status = Box::new(Status { code, ..Status::default() });
            watcher::Error::InitialListFailed(kube::Error::Api(status))
        };
        assert!(hint(&refused(403)).contains("right"));
        assert!(hint(&refused(404)).contains("install"));
        assert!(hint(&refused(401)).contains("token"));
        assert!(hint(&watcher::Error::NoResourceVersion).contains("again"));
    }
}
