//! Following the events of a resource.
//!
//! A watch holds a position, not a buffer: it reads from the history that all watches share. One that reads too slowly
//! finds its position compacted and ends; it can never hold memory back or slow a writer down.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::event::Event;
use super::state::State;

/// Why a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    #[error("the watch is at revision {position}, but the oldest one known is {oldest}")]
    Lagged { position: u64, oldest: u64 },
    #[error("the store is closed")]
    Closed,
}

/// The events of a resource after a revision, in order, each exactly once.
#[derive(Debug)]
pub struct Watch {
    state: Arc<RwLock<State>>,
    /// Says that a revision has been published, after it is in the state.
    published: watch::Receiver<u64>,
    resource: Arc<str>,
    namespace: Option<Arc<str>>,
    /// Every event up to here that concerns the watch has been delivered.
    position: u64,
}

impl Watch {
    pub(super) fn new(
        state: Arc<RwLock<State>>,
        published: watch::Receiver<u64>,
        resource: &str,
        namespace: Option<&str>,
        position: u64,
    ) -> Self {
        Self { state, published, resource: resource.into(), namespace: namespace.map(Arc::from), position }
    }

    /// The next event. Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Event, WatchEnd> {
        loop {
            // Before the look: what is published after it wakes the wait below.
            self.published.mark_unchanged();
            if let Some(event) = self.advance()? {
                return Ok(event);
            }
            if self.published.changed().await.is_err() {
                // The last revisions may have been published just before the end.
                return self.advance()?.ok_or(WatchEnd::Closed);
            }
        }
    }

    /// A revision up to which everything has been delivered: what a bookmark may say. It is the current revision
    /// unless an event is waiting.
    pub fn progress(&mut self) -> Result<u64, WatchEnd> {
        let (position, _) = self.look()?;
        self.position = position;
        Ok(position)
    }

    /// Takes the next event that is already there.
    fn advance(&mut self) -> Result<Option<Event>, WatchEnd> {
        let (position, event) = self.look()?;
        self.position = event.as_ref().map_or(position, |event| event.revision);
        Ok(event)
    }

    /// The first event that is for this watch, and the last revision before it.
    fn look(&self) -> Result<(u64, Option<Event>), WatchEnd> {
        let state = self.state.read();
        let lagged = WatchEnd::Lagged { position: self.position, oldest: state.history.compacted() };
        let mut waiting = state.history.after(self.position).ok_or(lagged)?;
        let event = waiting.find(|event| event.concerns(&self.resource, self.namespace.as_deref())).cloned();
        let position = event.as_ref().map_or(state.revision.max(self.position), |event| event.revision - 1);
        Ok((position, event))
    }
}
