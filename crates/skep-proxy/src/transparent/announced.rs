//! Streams of servers that speak HTTP+SSE: the session that the server announces on each, and its address for messages.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use skep_mcp::Revision;
use skep_mcp::sse::Event;
use tokio_util::sync::CancellationToken;

use super::addresses::{MESSAGES, Opened};
use super::endpoint::Rewrite;
use crate::body::{Body, BodyError};
use crate::budget::Allowance;
use crate::eras::session_tasks::SessionTasks;
use crate::open_ended::OpenEnded;
use crate::passing::{self, Change};
use crate::sessions::{Kind, Session, Sessions};

/// What is held of one event. The one that matters is short, and longer ones pass through in parts.
const LARGEST: usize = 64 << 10;
/// How a session is named in an address, and in JSON.
const NAMED: [&str; 2] = ["sessionId=", "\"sessionId\":\""];

/// A stream while it passes.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) sessions: Arc<Sessions>,
    pub(super) caller: Option<Arc<str>>,
    /// Where the client is.
    pub(super) address: Option<IpAddr>,
    /// Cancelled when the first client has a session.
    pub(super) served: CancellationToken,
    /// How addresses are changed, if they are.
    pub(super) rewrite: Option<Rewrite>,
    /// Whether the session of the stream is known.
    pub(super) is_known: bool,
    /// Where those find it who send messages.
    pub(super) opened: Opened,
    /// Whether an event passes in parts.
    pub(super) is_within: bool,
    /// The tasks of the client, where it is known.
    pub(super) tasks: Option<Box<SessionTasks>>,
    /// What may be held of an event that may have to be changed.
    pub(super) allowance: Allowance,
}

impl Announced {
    pub(super) fn stream(self: Box<Self>, body: Body) -> Body {
        let allowance = Allowance { largest: LARGEST, ..self.allowance.clone() };
        passing::changed(body, &allowance, *self)
    }

    /// What the stream is, as far as its end is concerned.
    pub(super) fn open_ended(&self) -> OpenEnded {
        self.opened.stream.open_ended()
    }

    async fn learn(&mut self, data: &[u8]) {
        let Some(id) = std::str::from_utf8(data).ok().and_then(named) else { return };
        self.is_known = true;
        self.served.cancel();
        let mut session = Session::new(id, Kind::Transparent, Revision::ASSUMED, self.caller.as_ref());
        if let Some(address) = self.opened.address() {
            session.metadata.insert(MESSAGES.to_owned(), address.to_owned());
        }
        if self.sessions.create(session.at(self.address), |_| false).await.is_err() {
            tracing::warn!("a session of the MCP server is not written down");
        }
    }
}

impl Change for Announced {
    async fn event(&mut self, event: Bytes) -> Bytes {
        let read = Event::read(&event);
        self.is_within = false;
        self.opened.stream.unanswered.see(&read);
        let data = read.data.as_deref().unwrap_or_default();
        let is_announcement = read.name == Some(b"endpoint");
        if is_announcement {
            self.opened.announce(data);
        }
        if !self.is_known {
            self.learn(data).await;
        }
        if is_announcement {
            return match &self.rewrite {
                Some(rewrite) => rewrite.announced(event),
                None => event,
            };
        }
        let event = self.opened.stream.talk.event(event);
        match &mut self.tasks {
            Some(tasks) => tasks.event(event).await,
            None => event,
        }
    }

    fn part(&mut self, part: Bytes) -> Result<Bytes, BodyError> {
        if !std::mem::replace(&mut self.is_within, true) {
            self.opened.stream.unanswered.see_large();
        }
        Ok(part)
    }

    fn largest(&self) -> Option<usize> {
        self.opened.stream.talk.holds_events().then_some(self.allowance.largest)
    }
}

/// The session that a text names.
pub(super) fn named(data: &str) -> Option<&str> {
    NAMED.iter().find_map(|before| {
        let (_, rest) = data.split_once(before)?;
        let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|id| !id.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_in_what_announces_them() {
        for (data, expected) in [
            ("/message?sessionId=4f1c-09&x=1", Some("4f1c-09")),
            (r#"{"x":1,"sessionId":"ab12"}"#, Some("ab12")),
            ("/messages/?session_id=4f1c", None),
            ("/message?sessionId=", None),
            ("/message", None),
        ] {
            assert_eq!(named(data), expected, "{data}");
        }
    }
}
