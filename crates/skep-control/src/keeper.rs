//! The form in which a cache keeps its objects.

use std::sync::Arc;

/// Keeps objects of type `K` in a form of its own, and makes objects of them again.
pub trait Keeper<K>: Default + Send + Sync + 'static {
    /// An object as it is kept.
    type Kept;

    /// Takes down an object.
    fn keep(&self, object: &Arc<K>) -> Self::Kept;

    /// The object that was taken down; nothing if it was none.
    fn recall(&self, kept: &Self::Kept) -> Option<Arc<K>>;
}

/// Keeps objects as they are: the right thing where they are looked at all the time.
#[derive(Debug, Default)]
pub struct Whole;

impl<K> Keeper<K> for Whole {
    type Kept = Arc<K>;

    fn keep(&self, object: &Arc<K>) -> Arc<K> {
        object.clone()
    }

    fn recall(&self, kept: &Arc<K>) -> Option<Arc<K>> {
        Some(kept.clone())
    }
}
