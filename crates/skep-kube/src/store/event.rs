//! What happened at one revision.

use std::sync::Arc;

use super::key::Key;
use super::record::Record;

/// One revision: every revision after the first is exactly one change of exactly one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub revision: u64,
    pub change: Changed,
}

/// How an object changed, with what it was before: a selector that stops matching turns a change into a deletion for
/// those who watch through it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    Created {
        after: Arc<Record>,
    },
    Updated {
        before: Arc<Record>,
        after: Arc<Record>,
    },
    /// `before` is the last state. Its revision is that of its last change; the deletion has the event's.
    Deleted {
        before: Arc<Record>,
    },
}

impl Event {
    /// The object before the event, if it existed.
    pub fn before(&self) -> Option<&Arc<Record>> {
        match &self.change {
            Changed::Created { .. } => None,
            Changed::Updated { before, .. } | Changed::Deleted { before } => Some(before),
        }
    }

    /// The object after the event, if it still exists.
    pub fn after(&self) -> Option<&Arc<Record>> {
        match &self.change {
            Changed::Created { after } | Changed::Updated { after, .. } => Some(after),
            Changed::Deleted { .. } => None,
        }
    }

    /// The newest state the event knows: the last one of a deleted object.
    pub fn record(&self) -> &Arc<Record> {
        match &self.change {
            Changed::Created { after } | Changed::Updated { after, .. } => after,
            Changed::Deleted { before } => before,
        }
    }

    pub fn key(&self) -> &Key {
        &self.record().key
    }

    /// Whether the event is about an object of the resource, in the namespace if one is named.
    pub fn concerns(&self, resource: &str, namespace: Option<&str>) -> bool {
        let key = self.key();
        *key.resource == *resource && namespace.is_none_or(|namespace| *key.namespace == *namespace)
    }
}
