//! Whoever holds it waits for an answer.

use std::sync::Arc;

use super::Calls;

/// A request that is called off when nobody waits for it any more.
#[derive(Debug)]
pub(in crate::stdio) struct Ticket {
    calls: Arc<Calls>,
    number: u64,
    is_kept: bool,
}

impl Ticket {
    pub(super) fn new(calls: &Arc<Calls>, number: u64) -> Self {
        Self { calls: Arc::clone(calls), number, is_kept: false }
    }

    #[cfg(test)]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Lets the request run until its end, whoever waits for it.
    pub(in crate::stdio) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_kept {
            self.calls.cancel(self.number);
        }
    }
}
