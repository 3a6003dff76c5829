//! How much one session has under way at once.

use std::sync::Arc;

use parking_lot::Mutex;
use skep_mcp::Message;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};

use crate::answer::{self, Answer};
use crate::limits::{CALL_BYTES_PER_SESSION, CALLS_PER_SESSION};

/// What one session has under way.
#[derive(Debug, Default)]
pub(crate) struct Load(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    calls: usize,
    bytes: usize,
}

/// A session has as much under way as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Load {
    /// Makes room for a request of which so many bytes are kept until its answer. A large one needs room for itself only.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Result<Share, TooMuch> {
        let mut held = self.0.lock();
        if held.calls >= CALLS_PER_SESSION || held.bytes >= CALL_BYTES_PER_SESSION {
            return Err(TooMuch);
        }
        held.calls += 1;
        held.bytes += bytes;
        Ok(Share { load: Arc::clone(self), bytes })
    }
}

/// The room that a request has, until it is over.
#[derive(Debug)]
pub(crate) struct Share {
    load: Arc<Load>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.load.0.lock();
        held.calls -= 1;
        held.bytes -= self.bytes;
    }
}

impl TooMuch {
    /// What a client is told.
    pub(crate) fn fault() -> Fault {
        let told =
            format!("a session may have {CALLS_PER_SESSION} requests under way, and no more; wait for their answers");
        Fault::new(INTERNAL_ERROR, told)
    }

    /// The refusal of a request.
    pub(crate) fn answer(request: &Message) -> Answer {
        answer::too_many(&Self::fault(), request.owned_id().as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_their_bytes_are_bounded_until_they_are_over() {
        let load: Arc<Load> = Arc::default();
        let mut many: Vec<_> = (0..CALLS_PER_SESSION).map(|_| load.take(1).unwrap()).collect();
        assert_eq!(load.take(1).unwrap_err(), TooMuch);
        many.pop();
        many.push(load.take(10 * CALL_BYTES_PER_SESSION).unwrap());
        many.truncate(1);
        let _large = load.take(10 * CALL_BYTES_PER_SESSION).unwrap();
        assert_eq!(load.take(1).unwrap_err(), TooMuch);
    }
}
