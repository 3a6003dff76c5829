//! What a writer asks for, and what it gets.

use std::sync::Arc;

use super::key::Key;
use super::record::{Content, Record};

/// The most that an object may take, as etcd has it by default.
pub const OBJECT_BYTES: usize = 3 * 1024 * 1024 / 2;

/// A change of one object. Those of existing objects name the revision they were made from.
#[derive(Debug, Clone)]
pub enum Change {
    Create { key: Key, content: Content },
    Update { key: Key, expected: u64, content: Content },
    Delete { key: Key, expected: u64 },
}

impl Change {
    pub fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } | Self::Delete { key, .. } => key,
        }
    }

    /// How much there is to write.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Create { content, .. } | Self::Update { content, .. } => content.object.len(),
            Self::Delete { .. } => 0,
        }
    }
}

/// A change that is durable and visible.
#[derive(Debug, Clone)]
pub struct Committed {
    pub revision: u64,
    /// The object as it is now; the last state of a deleted one.
    pub record: Arc<Record>,
}

/// Why a change did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("the object already exists")]
    AlreadyExists,
    #[error("the object does not exist")]
    NotFound,
    #[error("the object has changed: its revision is {current}")]
    Conflict { current: u64 },
    #[error("the object takes {bytes} bytes, more than the {OBJECT_BYTES} that one may take")]
    TooLarge { bytes: usize },
    /// The change may turn out to be there when changes are accepted again.
    #[error("cannot write to the data folder: {cause}")]
    Storage { cause: Arc<str> },
    #[error("the store is closed")]
    Closed,
}
