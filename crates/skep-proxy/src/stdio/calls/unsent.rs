//! Why a request was not sent, and what its client is told.

use skep_mcp::Message;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};

use crate::answer::{self, Answer};
use crate::stdio::load::TooMuch;
use crate::stdio::outbox::Full;

/// What clients are told when a server does not take what they say.
const UNREAD: &str = "the MCP server does not read fast enough; nothing was sent";

/// Why a request was not sent.
#[derive(Debug, Clone, Copy)]
pub(in crate::stdio) enum Unsent {
    /// The server does not read fast enough.
    Full,
    /// The client has too much under way already.
    TooMuch,
}

impl From<Full> for Unsent {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

impl From<TooMuch> for Unsent {
    fn from(TooMuch: TooMuch) -> Self {
        Self::TooMuch
    }
}

impl Unsent {
    /// What a client is told.
    pub(in crate::stdio) fn fault(self) -> Fault {
        match self {
            Self::Full => Fault::new(INTERNAL_ERROR, UNREAD),
            Self::TooMuch => TooMuch::fault(),
        }
    }

    /// The refusal of a request.
    pub(in crate::stdio) fn answer(self, request: &Message) -> Answer {
        match self {
            Self::Full => Full::answer(),
            Self::TooMuch => TooMuch::answer(request),
        }
    }
}

impl Full {
    /// The refusal of whatever it was.
    pub(in crate::stdio) fn answer() -> Answer {
        answer::not_ready(UNREAD)
    }
}
