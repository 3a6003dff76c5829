//! Responses that do not answer what was asked: what the server did instead, and what somebody can do about it.

use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Kind, Message, method};

/// Letters of a content type that are repeated.
const KIND: usize = 60;

/// What a server said about its response, before it turned out to be no answer.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    status: StatusCode,
    /// What the response calls itself.
    kind: Option<String>,
}

/// Why a response is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The connection broke.
    Lost,
    /// Its stream of events ended before the answer.
    Ended,
    /// It is larger than what is read.
    TooLarge,
    /// It has to be held, and there is no room for it.
    NoRoom,
    /// There is nothing in it.
    Empty,
    /// What is in it is no message, or none that answers.
    NoAnswer,
    /// It answers something else.
    OtherId,
}

impl Said {
    /// What the head of a response says.
    pub(crate) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).filter(|kind| !kind.is_empty());
        Self { status, kind: kind.map(|kind| kind.chars().take(KIND).collect()) }
    }

    /// What the client of a request is told, and the log.
    pub(crate) fn fault(&self, name: &str, problem: Problem) -> Fault {
        let told = Words { said: self, name, problem }.to_string();
        // A server of sessions need not know what to say to a question of the other era, and nobody waits for that.
        if name != method::DISCOVER {
            let (status, content_type) = (self.status.as_u16(), self.kind.as_deref().unwrap_or_default());
            tracing::warn!(method = name, status, content_type, ?problem, "the MCP server did not answer a request");
        }
        Fault::new(INTERNAL_ERROR, told)
    }
}

/// Whether a message is the answer to the request with this id, as JSON. An error may be about an id that its server could
/// not read, and some servers write numbers as text.
pub(crate) fn is_answer(message: &Message, id: &str) -> bool {
    let plain = |id: &str| id.trim_matches('"').to_owned();
    message.kind() == Kind::Response
        && (message.error().is_some() || message.id().is_some_and(|told| plain(told) == plain(id)))
}

struct Words<'a> {
    said: &'a Said,
    name: &'a str,
    problem: Problem,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { said: Said { status, kind }, name, problem } = self;
        let status = status.as_u16();
        let kind = kind.as_deref().unwrap_or("without a content type");
        match problem {
            Problem::Lost => write!(formatter, "the connection to the MCP server was lost"),
            Problem::Ended => write!(formatter, "the MCP server ended its stream of events before it answered {name}"),
            Problem::TooLarge => write!(formatter, "what the MCP server answers {name} with is too large"),
            Problem::NoRoom => write!(formatter, "the answer to {name} is lost: {}", crate::budget::Spent),
            Problem::Empty => write!(formatter, "the MCP server answers {name} with status {status} and no body"),
            Problem::NoAnswer => {
                write!(
                    formatter,
                    "the MCP server answers {name} with status {status} and a body ({kind}) that is no answer"
                )
            }
            Problem::OtherId => {
                write!(formatter, "the MCP server answers {name} with status {status} and the id of another request")
            }
        }?;
        write!(formatter, "; whether it did what was asked is unknown")?;
        match problem {
            Problem::Lost | Problem::Ended | Problem::TooLarge => write!(formatter, ", and its log may tell"),
            Problem::NoRoom => Ok(()),
            Problem::Empty | Problem::NoAnswer => {
                write!(formatter, ". See whether its URL is that of an MCP endpoint, and look into its log")
            }
            Problem::OtherId => write!(formatter, ". That is a mistake of the server; its log may tell more"),
        }
    }
}
