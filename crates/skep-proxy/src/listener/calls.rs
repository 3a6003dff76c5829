//! How many requests are under way on all connections of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts requests until their answers were sent.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<AtomicUsize>);

impl Calls {
    /// How many there are now.
    pub fn under_way(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more.
    pub(super) fn begin(&self) -> Call {
        self.0.fetch_add(1, Ordering::Relaxed);
        Call(self.clone())
    }
}

/// One of them.
#[derive(Debug)]
pub(super) struct Call(Calls);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
