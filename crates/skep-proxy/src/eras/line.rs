//! The way to a server, whatever it is made of.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::StatusCode;
use serde_json::Value;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Id, Message, json};

use super::pool::Lease;
use crate::answer::{self, Answer};
use crate::budget;

/// What is said for a request. The last message is its answer, and there always is one. Whoever drops it before calls
/// the request off.
pub(crate) type Replies = BoxStream<'static, Message>;

/// How long a server may take to say what it speaks.
const PATIENCE: Duration = Duration::from_secs(10);

/// A way on which messages are exchanged.
pub(crate) trait Line: Send + Sync + 'static {
    /// Sends a request. Ids and progress tokens on the way are the line's own affair: what comes back carries those of
    /// the request.
    fn ask<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Replies, Lost>>;

    /// What the server itself answers to a request. What we would say in its place is none of its words.
    fn hear<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Message, Lost>>;

    /// Sends a message that has no answer, and tells whether it was taken.
    fn tell(&self, message: Bytes) -> BoxFuture<'_, bool>;

    /// What the server says that belongs to no request, if it says such things here.
    fn overhear(&self) -> BoxFuture<'_, Option<Replies>>;

    /// How long the server may take to say what it speaks.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// The server is not what it was taken for, and is to be asked what it speaks.
    fn doubt(&self);

    /// Whether a server that has not said what it speaks, or has ended before it did, takes a handshake. On a line where anything may come between the
    /// two, silence says nothing about the server, and nothing is tried.
    fn takes_handshake(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }
}

/// Why nothing is said for a request.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The server has no such session, so that it cannot have done anything.
    NoSession,
    /// The server, or something before it, answered in a way that has no words of the protocol.
    Refused(Box<Answer>),
    /// What the server sent is no answer, for this reason.
    Unanswered(Box<str>),
    /// The server cannot be reached.
    Unreached,
    /// The server took too long.
    TimedOut,
}

impl Lost {
    /// Whether the same client is not answered later, either, unless it shows something else.
    pub(super) fn is_final(&self) -> bool {
        let Self::Refused(answer) = self else { return false };
        answer.status().is_client_error() && !is_away(answer.status())
    }

    /// Whether the server does not take what the client proves itself with.
    pub(super) fn is_challenge(&self) -> bool {
        matches!(self, Self::Refused(answer) if matches!(answer.status().as_u16(), 401 | 403 | 407))
    }

    /// What a client is told.
    pub(crate) fn answer(self) -> Answer {
        match self {
            Self::Refused(answer) => *answer,
            Self::NoSession => answer::text(StatusCode::BAD_GATEWAY, "the MCP server keeps losing its sessions"),
            Self::Unanswered(reason) => answer::text(StatusCode::BAD_GATEWAY, &reason),
            Self::Unreached => answer::empty(StatusCode::BAD_GATEWAY),
            Self::TimedOut => answer::text(StatusCode::GATEWAY_TIMEOUT, "the MCP server does not answer"),
        }
    }

    /// What a client is told that has a stream already.
    pub(crate) fn fault(&self) -> Fault {
        let told = match self {
            Self::Refused(answer) => format!("the MCP server refuses the request with status {}", answer.status()),
            Self::NoSession => "the MCP server keeps losing its sessions".to_owned(),
            Self::Unanswered(reason) => reason.to_string(),
            Self::Unreached => "the MCP server cannot be reached".to_owned(),
            Self::TimedOut => "the MCP server does not answer".to_owned(),
        };
        Fault::new(INTERNAL_ERROR, told)
    }
}

/// How a session may be used by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// At the same time.
    Shared,
    /// Afterwards.
    Alone,
    /// Never.
    OnlyOnce,
}

/// A server of sessions, for one client that has none.
pub(crate) trait Hosts: Send + Sync + 'static {
    /// A session for a client with these capabilities.
    fn seat<'a>(&'a self, capabilities: &'a str, sharing: Sharing) -> BoxFuture<'a, Result<Seat, NoSession>>;

    /// Whether a session can be for one client alone, so that what the server asks and logs there is for that one.
    fn has_own_sessions(&self) -> bool;
}

/// A session while it is used.
pub(crate) struct Seat {
    pub(crate) line: Arc<dyn Line>,
    /// What the server answered to the handshake: its result.
    pub(crate) agreed: Arc<str>,
    /// What returns the session, where there is more than one.
    pub(crate) held: Option<Lease>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Seat").field("held", &self.held).finish_non_exhaustive()
    }
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// There are too many already.
    Full,
    /// The client has this many already, which is as many as it may have.
    TooMany(usize),
    /// The server could not be asked.
    Lost(Lost),
    /// The server did not agree: its error, or what is wrong with its answer.
    Refused(String),
}

/// Marks an answer to a request that the server has not seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unbegun;

impl NoSession {
    /// Whether the same client gets none later, either.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Lost(lost) => lost.is_final(),
            Self::Refused(_) => true,
            Self::Full | Self::TooMany(_) => false,
        }
    }

    /// What a client is told.
    pub(crate) fn answer(self, id: Option<&Id>) -> Answer {
        match self {
            Self::Full => answer::not_ready("too many sessions at the MCP server are in use"),
            Self::TooMany(most) => {
                let told = format!("this client may have {most} sessions at the MCP server, and no more; end one");
                answer::too_many(&Fault::new(INTERNAL_ERROR, told), id)
            }
            Self::Lost(lost) => unbegun(lost.answer()),
            Self::Refused(told) => {
                let fault = Fault::new(INTERNAL_ERROR, format!("no handshake with the MCP server: {told}"));
                unbegun(answer::fault(StatusCode::BAD_GATEWAY, &fault, id))
            }
        }
    }
}

/// Whether whoever answers so may answer otherwise later.
pub(crate) fn is_away(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

fn unbegun(mut answer: Answer) -> Answer {
    answer.extensions_mut().insert(Unbegun);
    answer
}

/// A request of our own.
pub(crate) fn request(method: &str, params: &Value) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":{},"params":{params}}}"#, json::quote(method));
    match Message::read(text.into()) {
        Ok(message) => message,
        // It has all that a message needs, and serde_json writes nothing else than JSON.
        Err(error) => unreachable!("our own request is a message: {error}"),
    }
}

/// A notification of our own.
pub(crate) fn notification(method: &str, params: &Value) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, json::quote(method)).into()
}

/// An answer of the server with another result or error in it, for the request of this id. Every other byte of it stays,
/// and so does the room that it has.
pub(crate) fn answered(said: &Message, id: &str, outcome: Outcome<'_>) -> Bytes {
    budget::made_of(said.text(), reworded(said, id, outcome))
}

fn reworded(said: &Message, id: &str, outcome: Outcome<'_>) -> Bytes {
    let (name, text) = match outcome {
        Outcome::Result(text) => ("result", text),
        Outcome::Error(text) => ("error", text),
    };
    let place = json::find(said.as_str(), &[name]).ok().flatten();
    let (Some(place), Some(id_place)) = (place, said.id_span()) else {
        // It was said in another way, or to nobody.
        return match outcome {
            Outcome::Result(text) => result(id, text),
            Outcome::Error(text) => error(id, text),
        };
    };
    let mut changes = [(place, text.as_bytes()), (id_place, id.as_bytes())];
    changes.sort_by_key(|(place, _)| place.start);
    said.with(changes)
}

/// How a request ends, as JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome<'a> {
    Result(&'a str),
    Error(&'a str),
}

/// An answer with a result, as text.
pub(crate) fn result(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An answer with an error, as text.
pub(crate) fn error(id: &str, error: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_will_not_change_is_final() {
        let refused = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            NoSession::Lost(Lost::Refused(Box::new(answer::empty(status))))
        };
        for (none, is_final) in [
            (refused(401), true),
            (refused(403), true),
            (refused(404), true),
            (refused(408), false),
            (refused(429), false),
            (refused(503), false),
            (NoSession::Refused("no".to_owned()), true),
            (NoSession::Full, false),
            (NoSession::TooMany(1), false),
            (NoSession::Lost(Lost::Unreached), false),
            (NoSession::Lost(Lost::TimedOut), false),
            (NoSession::Lost(Lost::NoSession), false),
        ] {
            assert_eq!(none.is_final(), is_final, "{none:?}");
        }
    }
}
