//! The revision store: all objects of the server, under one revision that counts every change.
//!
//! Readers and watchers are served from memory. A change is visible to them only after it is durable, and everybody
//! sees all changes in the same order. The store knows nothing of kinds, versions or selectors: an object is bytes
//! with labels.
//!
//! ```text
//! commit ─> writer thread ─> redb transaction ─> index + history ─> watches
//!                                                      └─> get, list, list_at
//! ```

mod change;
mod disk;
mod event;
mod follower;
mod history;
mod index;
mod key;
mod page;
mod record;
mod state;
mod text;
mod trouble;
mod watch;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot, watch as published};

pub use self::change::{Change, CommitError, Committed, OBJECT_BYTES};
pub use self::disk::{Durability, FORMAT_VERSION, OpenError};
pub use self::event::{Changed, Event};
pub use self::follower::{Follower, News};
pub use self::history::HistoryLimits;
pub use self::key::Key;
pub use self::page::{Page, Selection};
pub use self::record::{Content, Labels, Record};
pub use self::state::RevisionError;
pub use self::text::{SHARED, Text};
pub use self::watch::{Watch, WatchEnd};

use self::disk::{Disk, FIRST_REVISION, Loaded};
use self::state::State;
use self::trouble::Telling;
use self::writer::{Log, Request, WAITING_CHANGES, Writer};

/// How a store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    pub durability: Durability,
    pub history: HistoryLimits,
    /// Whether a folder without a store is refused, rather than made into one.
    pub must_exist: bool,
}

/// A handle on the store. The store closes when one says so, or, some time later, when the last one is gone.
#[derive(Debug, Clone)]
pub struct Store {
    state: Arc<RwLock<State>>,
    published: published::Receiver<u64>,
    requests: mpsc::Sender<Request>,
}

impl Store {
    /// Opens a data folder, or makes a new one; without a folder the store is in memory only. Blocks while it reads.
    /// Nothing in a folder that is there changes before the first change is made.
    pub fn open(folder: Option<&Path>) -> Result<Self, OpenError> {
        Self::open_with(folder, Options::default())
    }

    pub fn open_with(folder: Option<&Path>, options: Options) -> Result<Self, OpenError> {
        let unreadable =
            |source| OpenError::Unreadable { path: folder.map(Path::to_owned).unwrap_or_default(), source };
        match folder {
            None => Self::start(State::new(Vec::new(), FIRST_REVISION, options.history), None).map_err(unreadable),
            Some(folder) => {
                let Loaded { disk, records, revision } = Disk::open(folder, options.must_exist, options.durability)?;
                let state = State::new(records, revision, options.history);
                Self::start(state, Some(Box::new(disk))).map_err(unreadable)
            }
        }
    }

    fn start(state: State, log: Option<Box<dyn Log>>) -> io::Result<Self> {
        let (sender, published) = published::channel(state.revision);
        let (requests, waiting) = mpsc::channel(WAITING_CHANGES);
        let state = Arc::new(RwLock::new(state));
        let (trouble, telling) = (None, Telling::default());
        let writer = Writer { requests: waiting, state: state.clone(), published: sender, log, trouble, telling };
        std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())?;
        Ok(Self { state, published, requests })
    }

    /// Makes a change. When this returns it is durable and visible. A caller that does not wait for the answer may
    /// still have made the change.
    pub async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let bytes = change.size();
        if bytes > OBJECT_BYTES {
            return Err(CommitError::TooLarge { bytes });
        }
        let (answer, outcome) = oneshot::channel();
        self.requests.send(Request::Commit { change, answer }).await.map_err(|_| CommitError::Closed)?;
        outcome.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Finishes the changes that were asked for before, and lets go of the folder. Watches end, reads still answer.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.requests.send(Request::Close { done }).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// Whether changes can be made. Once a write to the disk has failed they cannot, until one succeeds, which is tried
    /// from time to time.
    pub fn health(&self) -> Result<(), CommitError> {
        if let Some(cause) = &self.state.read().failure {
            return Err(CommitError::Storage { cause: cause.clone() });
        }
        if self.requests.is_closed() { Err(CommitError::Closed) } else { Ok(()) }
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// The oldest revision that can be listed and watched from.
    pub fn oldest_revision(&self) -> u64 {
        self.state.read().history.compacted()
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Record>> {
        self.state.read().index.get(key).cloned()
    }

    /// The objects as they are now.
    pub fn list(&self, selection: &Selection<'_>) -> Page {
        self.state.read().list(selection)
    }

    /// The objects as they were at a revision, so that the pages of one list fit together.
    pub fn list_at(&self, revision: u64, selection: &Selection<'_>) -> Result<Page, RevisionError> {
        self.state.read().list_at(revision, selection)
    }

    /// Follows the changes after a revision, or from now on. A revision that has not happened yet is waited for.
    pub fn watch(&self, resource: &str, namespace: Option<&str>, from: Option<u64>) -> Result<Watch, RevisionError> {
        let state = self.state.read();
        let position = from.unwrap_or(state.revision);
        state.check(position.min(state.revision))?;
        Ok(self.watch_from(resource, namespace, position))
    }

    /// The objects as they are now, and what happens to them from exactly then on.
    pub fn watch_with_state(&self, resource: &str, namespace: Option<&str>) -> (Page, Watch) {
        let state = self.state.read();
        let page = state.list(&Selection { namespace, ..Selection::all(resource) });
        let watch = self.watch_from(resource, namespace, page.revision);
        (page, watch)
    }

    fn watch_from(&self, resource: &str, namespace: Option<&str>, position: u64) -> Watch {
        Watch::new(self.state.clone(), self.published.clone(), resource, namespace, position)
    }

    /// Forgets what happened before a revision. The history does so by itself when it is full.
    pub fn compact(&self, revision: u64) -> Result<(), RevisionError> {
        let mut state = self.state.write();
        state.check(revision)?;
        state.history.compact(revision);
        Ok(())
    }
}
