//! How much each session watches, so that nobody watches without end.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use skep_mcp::fault::{Fault, INVALID_PARAMS};

use crate::limits::{WATCHED_PER_SESSION, WATCHED_URI_BYTES};

/// How many resources each session watches, or is about to.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<Arc<str>, usize>>);

/// Why a session does not watch a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stdio) enum Unwatched {
    /// It watches as many as it may.
    TooMany,
    /// Its name takes too much to remember.
    TooLong,
}

impl Unwatched {
    /// What a client is told.
    pub(in crate::stdio) fn fault(self) -> Fault {
        let told = match self {
            Self::TooMany => format!("a session may watch {WATCHED_PER_SESSION} resources, and no more"),
            Self::TooLong => format!("a uri of more than {WATCHED_URI_BYTES} bytes cannot be watched"),
        };
        Fault::new(INVALID_PARAMS, told)
    }
}

impl Places {
    /// Makes room for one more.
    pub(super) fn take(self: &Arc<Self>, session: &Arc<str>) -> Result<Place, Unwatched> {
        let mut taken = self.0.lock();
        let count = taken.entry(Arc::clone(session)).or_default();
        if *count >= WATCHED_PER_SESSION {
            return Err(Unwatched::TooMany);
        }
        *count += 1;
        Ok(Place { places: Arc::clone(self), session: Arc::clone(session) })
    }

    /// How many sessions watch something.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.0.lock().len()
    }
}

/// The room for one resource, until it is watched no more.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    session: Arc<str>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(count) = taken.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.session);
            }
        }
    }
}
