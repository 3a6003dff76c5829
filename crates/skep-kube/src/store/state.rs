//! What everybody reads: the index, the history and the revision, which change together.

use std::sync::Arc;

use super::event::Event;
use super::history::{History, HistoryLimits};
use super::index::Index;
use super::key::compare_positions;
use super::page::{Page, Selection, overlay, undo};
use super::record::Record;

/// A revision that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RevisionError {
    #[error("revision {requested} is gone: the oldest one known is {oldest}")]
    Expired { requested: u64, oldest: u64 },
    #[error("revision {requested} has not happened yet: the current one is {current}")]
    Future { requested: u64, current: u64 },
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) index: Index,
    pub(super) history: History,
    pub(super) revision: u64,
    /// Why nothing can be written at the moment.
    pub(super) failure: Option<Arc<str>>,
}

impl State {
    /// The state of a store that was just opened: what happened before is not known.
    pub(super) fn new(records: Vec<Record>, revision: u64, limits: HistoryLimits) -> Self {
        let mut index = Index::default();
        for mut record in records {
            record.key = index.intern(record.key);
            index.insert(Arc::new(record));
        }
        Self { index, history: History::new(revision, limits), revision, failure: None }
    }

    pub(super) fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            match event.after() {
                Some(record) => self.index.insert(record.clone()),
                None => self.index.remove(event.key()),
            }
            self.revision = event.revision;
            self.history.push(event);
        }
    }

    /// Whether the state at the revision, and the events since, are known.
    pub(super) fn check(&self, requested: u64) -> Result<(), RevisionError> {
        if requested > self.revision {
            return Err(RevisionError::Future { requested, current: self.revision });
        }
        if requested < self.history.compacted() {
            return Err(RevisionError::Expired { requested, oldest: self.history.compacted() });
        }
        Ok(())
    }

    pub(super) fn list(&self, selection: &Selection<'_>) -> Page {
        let Selection { resource, namespace, after, .. } = *selection;
        selection.page(self.revision, self.index.scan(resource, namespace, after))
    }

    pub(super) fn list_at(&self, revision: u64, selection: &Selection<'_>) -> Result<Page, RevisionError> {
        self.check(revision)?;
        let Selection { resource, namespace, after, .. } = *selection;
        let since = self.history.after(revision).into_iter().flatten().rev();
        let past = undo(since.filter(|event| {
            event.concerns(resource, namespace)
                && after.is_none_or(|after| compare_positions(event.key().position(), after).is_gt())
        }));
        let current = self.index.scan(resource, namespace, after);
        Ok(selection.page(revision, overlay(current, past.iter())))
    }
}
