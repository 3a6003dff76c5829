//! Why a request was not sent, and what its client is told.

use skep_mcp::fault::{Fault, INTERNAL_ERROR};

use crate::stdio::load::TooMuch;
use crate::stdio::outbox::Full;

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
            Self::Full => Fault::new(INTERNAL_ERROR, "Internal error"),
            Self::TooMuch => TooMuch::fault(),
        }
    }
}
