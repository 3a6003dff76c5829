//! Keeping up with the store without a task: what is worked out from objects is brought up to date when it is needed.

use super::Store;
use super::event::Event;
use super::key::Key;

/// What has happened since somebody looked last.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// These changes, oldest first.
    Changes(Vec<Event>),
    /// More than is still known, or nobody has looked before: everything must be read anew.
    Everything,
}

/// How far somebody has taken notice of the changes.
///
/// Whoever uses it sees every acknowledged change, in the order of the revisions, whatever became of the request that
/// made it.
#[derive(Debug, Default)]
pub struct Follower {
    /// Every change up to here has been told; none: nothing has.
    position: Option<u64>,
}

impl Follower {
    /// Whether nothing at all has happened since.
    pub fn is_current(&self, store: &Store) -> bool {
        self.position == Some(store.revision())
    }

    /// Tells what has happened to the objects that concern the one who asks. After [`News::Everything`] changes may be
    /// told once more that were seen already when everything was read.
    pub fn catch_up(&mut self, store: &Store, concerns: impl Fn(&Key) -> bool) -> News {
        let state = store.state.read();
        let events = self.position.and_then(|position| state.history.after(position));
        let news = match events {
            Some(events) => News::Changes(events.filter(|event| concerns(event.key())).cloned().collect()),
            None => News::Everything,
        };
        self.position = Some(state.revision);
        news
    }
}
