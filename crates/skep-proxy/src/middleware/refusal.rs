//! Why the chain refuses a request, and what the client is told then. Reasons beyond these words go to the log.

use http::StatusCode;
use skep_mcp::Id;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, INVALID_PARAMS};

use crate::answer::{self, Answer};

/// A reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The body has more bytes than it may have.
    TooLarge,
    /// The tool is hidden, or there is none of that name.
    NoSuchTool,
    /// The same, for a client that takes no JSON.
    NoSuchToolUnsaid,
    /// A call that does not say of what.
    NoTool,
    /// A list could not be read, so that it cannot be told what may be shown of it.
    UnreadableList,
    /// The proxy itself is at fault.
    Panicked,
}

/// How a refusal is told.
enum Words {
    Nothing,
    Text(&'static str),
    Fault(i64, &'static str),
}

impl Refusal {
    /// The table.
    fn row(self) -> (StatusCode, Words) {
        match self {
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Words::Text("Request Entity Too Large")),
            Self::NoSuchTool => (StatusCode::OK, Words::Fault(INVALID_PARAMS, "tool not found")),
            Self::NoSuchToolUnsaid | Self::NoTool => (StatusCode::BAD_REQUEST, Words::Nothing),
            Self::UnreadableList => (StatusCode::INTERNAL_SERVER_ERROR, Words::Fault(INTERNAL_ERROR, "internal error")),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, Words::Text("Internal Server Error")),
        }
    }

    /// The answer to the request of that id.
    pub(crate) fn answer(self, id: Option<&Id>) -> Answer {
        match self.row() {
            (status, Words::Nothing) => answer::empty(status),
            (status, Words::Text(text)) => answer::text(status, text),
            (status, Words::Fault(code, message)) => answer::fault(status, &Fault::new(code, message), id),
        }
    }

    /// What a stream says in its place, whose status is told already.
    pub(crate) fn message(self, id: Option<&Id>) -> String {
        match self.row() {
            (_, Words::Fault(code, message)) => Fault::new(code, message).answer(id),
            (_, Words::Nothing | Words::Text(_)) => Fault::new(INTERNAL_ERROR, "internal error").answer(id),
        }
    }
}
