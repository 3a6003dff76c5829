//! Something that happened to an object.

use std::fmt;
use std::sync::Arc;

use crate::key::Key;

/// One object before and after something happened to it.
pub struct Change<'a, K> {
    /// Its name.
    pub key: &'a Key,
    /// What it is now; of an object that is gone, what it was at the end, if that was told.
    pub now: Option<&'a K>,
    /// Whether the object is gone.
    pub gone: bool,
    recall: &'a dyn Fn() -> Option<Arc<K>>,
}

impl<'a, K> Change<'a, K> {
    /// A change of an object that exists, or existed until now. What it was before is recalled if somebody asks.
    pub(crate) fn new(key: &'a Key, recall: &'a dyn Fn() -> Option<Arc<K>>, now: Option<&'a K>) -> Self {
        Self { key, now, gone: false, recall }
    }

    /// The same, of an object that is gone.
    pub(crate) fn gone(self) -> Self {
        Self { gone: true, ..self }
    }

    /// What was known of the object, if it was known.
    pub fn before(&self) -> Option<Arc<K>> {
        (self.recall)()
    }

    /// The object as it is, unless it is gone.
    pub fn after(&self) -> Option<&'a K> {
        self.now.filter(|_| !self.gone)
    }
}

impl<K> fmt::Debug for Change<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Change").field("key", self.key).field("gone", &self.gone).finish_non_exhaustive()
    }
}
