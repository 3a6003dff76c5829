//! The recent events of all resources: what watches replay and what lists of older revisions are worked out from.
//!
//! Bounded by count and by bytes. What falls out is compacted: nobody can ask for it any more.

use std::collections::VecDeque;

use super::event::Event;

/// What an event costs besides the record it keeps alive.
const EVENT_BYTES: usize = 128;

/// How much of the past to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub events: usize,
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { events: 10_000, bytes: 64 * 1024 * 1024 }
    }
}

/// The events after `compacted`, one for each revision, so that a revision is an offset.
#[derive(Debug)]
pub(super) struct History {
    events: VecDeque<Event>,
    compacted: u64,
    bytes: usize,
    limits: HistoryLimits,
}

impl History {
    pub(super) fn new(compacted: u64, limits: HistoryLimits) -> Self {
        Self { events: VecDeque::new(), compacted, bytes: 0, limits }
    }

    /// The oldest revision that can still be read, and from which a watch can start.
    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(super) fn push(&mut self, event: Event) {
        self.bytes += cost(&event);
        self.events.push_back(event);
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            self.forget_oldest();
        }
    }

    /// Forgets the events up to and including a revision.
    pub(super) fn compact(&mut self, revision: u64) {
        while self.compacted < revision && !self.events.is_empty() {
            self.forget_oldest();
        }
    }

    /// The events after a revision, oldest first; none when the revision has been compacted.
    pub(super) fn after(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Event>> {
        let offset = usize::try_from(revision.checked_sub(self.compacted)?).ok()?;
        Some(self.events.range(offset.min(self.events.len())..))
    }

    fn forget_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= cost(&event);
            self.compacted = event.revision;
        }
    }
}

/// What the history alone keeps in memory: the state before. The state after belongs to the index, or is the state
/// before of a later event.
fn cost(event: &Event) -> usize {
    EVENT_BYTES + event.before().map_or(0, |record| record.size())
}
