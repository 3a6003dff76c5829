//! What a stream holds for a client that may come back, and what it lets go of.

use std::time::Instant;

use bytes::Bytes;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Id, Kind, Message};

use super::EventStream;

/// What a stream holds.
#[derive(Debug, Clone, Copy)]
pub(in crate::stdio) struct Held {
    /// When it ended.
    pub(in crate::stdio) ended: Option<Instant>,
    /// Whether a reader was given all of it.
    pub(in crate::stdio) is_read: bool,
    /// Whether somebody has begun to read it, and nobody reads it now.
    pub(in crate::stdio) is_left: bool,
    pub(in crate::stdio) bytes: usize,
    /// The bytes that no reader was given yet.
    pub(in crate::stdio) unread: usize,
}

/// An answer of so many bytes finds room, however much a client has left unread. What would be told instead is no smaller.
const SMALL: usize = 4 << 10;

impl EventStream {
    /// What it holds now.
    pub(in crate::stdio) fn held(&self) -> Held {
        let log = self.log.lock();
        Held {
            ended: log.end.map(|(_, when)| when),
            is_read: log.delivered >= log.next,
            is_left: log.is_left(),
            bytes: log.bytes,
            unread: log.unread(),
        }
    }

    /// Whoever keeps it may have to make room for it.
    pub(super) fn tidy_up(&self) {
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.tidy(Instant::now());
        }
    }

    /// Replaces an answer that there is no room for by one that says so, and gives the bytes that are unread then.
    pub(in crate::stdio) fn lose_answer(&self) -> usize {
        let mut log = self.log.lock();
        let last = log.events.back().map(|event| event.data.clone()).filter(|data| data.len() > SMALL);
        let answer = last.and_then(|data| Message::read(data).ok()).filter(|last| last.kind() == Kind::Response);
        if let Some(answer) = answer {
            log.replace_last(lost(answer.text(), answer.owned_id().as_ref()));
        }
        log.unread()
    }
}

/// What is told instead of an answer that a client has left for too long.
pub(super) fn lost(answer: &Bytes, id: Option<&Id>) -> Bytes {
    tracing::warn!(bytes = answer.len(), "dropped an answer, because the client does not read those before it");
    Fault::new(INTERNAL_ERROR, "the answer is lost: the client has left too many unread").answer(id).into()
}
