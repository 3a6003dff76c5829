//! A client and a server of sessions that speak different revisions: each is told its own.
//!
//! Where both speak the same one nothing of this happens, and everything passes byte for byte.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use skep_mcp::sse::Event;
use skep_mcp::{Kind, Message, Param, Payload, Revision, header, json, translate};

use super::Transparent;
use super::look::Known;
use super::upstream::Outgoing;
use crate::body::{Body, BodyError};
use crate::budget::{self, Allowance, Spent};
use crate::eras::http::{is_json, is_stream};
use crate::eras::unanswered::{Problem, Said, is_answer};
use crate::intake::JSON;
use crate::passing::{self, Change, Read, Unread};
use crate::sessions::Session;

/// What belongs to a session whose server speaks another revision than its client: that revision.
const SERVER_REVISION: &str = "server_protocol_version";

/// The two revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Between {
    pub(super) client: Revision,
    pub(super) server: Revision,
}

/// What the server answers to handshakes that ask for a revision which it does not speak. Clients to whom it gives no
/// session can only be known by the revision that they name.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<BTreeMap<Revision, Revision>>);

impl Told {
    /// A handshake that asked for one revision has ended in another, or in the same.
    pub(super) fn learn(&self, asked: Revision, told: Revision) {
        if asked == told {
            self.0.lock().remove(&asked);
        } else {
            self.0.lock().insert(asked, told);
        }
    }

    /// What is between a client of this revision and the server.
    pub(super) fn between(&self, client: Revision) -> Option<Between> {
        self.0.lock().get(&client).map(|server| Between { client, server: *server })
    }
}

impl Between {
    /// What is between the two sides of a handshake that has been answered, if that is anything.
    pub(super) fn agreed(asked: &str, answer: &Message) -> Option<Self> {
        let server = answer.result().and_then(translate::agreed)?;
        let client = Revision::parse(asked)?;
        let is_one = client == server || client.is_stateless() || server.is_stateless();
        (!is_one).then_some(Self { client, server })
    }

    /// What is between the two sides of a session.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let server = session.metadata.get(SERVER_REVISION).and_then(|text| Revision::parse(text))?;
        Some(Self { client: session.revision(), server })
    }

    /// Writes it down, so that every proxy that finds the session knows.
    pub(super) fn mark(self, session: &mut Session) {
        session.metadata.insert(SERVER_REVISION.to_owned(), self.server.text().to_owned());
    }

    /// A request as the server understands it.
    pub(super) fn ask(self, outgoing: &mut Outgoing, payload: Option<&Payload>) {
        // What is to be changed has to be readable.
        outgoing.headers.remove(ACCEPT_ENCODING);
        outgoing.headers.remove(header::PROTOCOL_VERSION);
        // The revisions before do not know the header.
        if self.server >= Revision::June2025 {
            outgoing.headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static(self.server.text()));
        }
        if let Some(Payload::Single(message)) = payload
            && let Some(body) = translate::request_for(message, self.server)
        {
            outgoing.body = body;
        }
    }

    /// An answer as the client understands it. `request` is what it has to answer, if it has to.
    pub(super) async fn answer(
        self,
        head: &mut http::response::Parts,
        body: Body,
        request: Option<&Message>,
        allowance: &Allowance,
    ) -> Result<Body, Spent> {
        if !self.is_older_client() || !head.status.is_success() || head.headers.contains_key(CONTENT_ENCODING) {
            return Ok(body);
        }
        if is_stream(&head.headers) {
            head.headers.remove(CONTENT_LENGTH);
            return Ok(passing::changed(body, allowance, self));
        }
        if request.is_none() && !is_json(&head.headers) {
            return Ok(body);
        }
        Ok(match passing::hold(body, allowance, |_| false).await {
            Ok(Read::Whole(text)) => {
                let changed = match request.and_then(|request| unanswered(head, &text, request)) {
                    Some(refusal) => Some(refusal),
                    None => std::str::from_utf8(&text).ok().and_then(|text| self.message(text)),
                };
                if changed.is_some() {
                    head.headers.remove(CONTENT_LENGTH);
                }
                Body::Full(budget::changed(text, changed.map(Bytes::from)))
            }
            Ok(Read::Begun(text, body)) => body.after(text),
            // Whoever reads on finds out where it ends.
            Err(Unread::Broken(text, error)) => broken(error).after(text),
            Err(Unread::NoRoom) => return Err(Spent),
        })
    }

    /// Whether the server may say what the client has no word for.
    pub(super) fn is_older_client(self) -> bool {
        self.client < self.server
    }

    /// An event as the client understands it.
    pub(super) fn adapted(self, event: Bytes) -> Bytes {
        if !self.is_older_client() {
            return event;
        }
        let read = Event::read(&event);
        let Some(data) = read.data.as_deref().filter(|_| read.is_message()) else { return event };
        if data.is_empty() && self.server.has_priming_events() {
            // It gives an id to come back with, and older clients take it for a message that is none.
            return without_data(&read);
        }
        match std::str::from_utf8(data).ok().and_then(|data| self.message(data)) {
            Some(changed) => passing::with_data(&event, changed.as_bytes()),
            None => event,
        }
    }

    /// A message in words that the client's revision has, if that changes it.
    fn message(self, text: &str) -> Option<String> {
        translate::answer_for(text, self.client)
    }
}

impl Transparent {
    /// Settles the revision of a session, and gives another answer to its handshake where the server's would not do: a
    /// client that asks for a revision which we know is told that one, whatever its server speaks.
    pub(super) fn settle_revision(
        &self,
        known: &mut Known,
        handshake: &Message,
        answer: Option<&Message>,
    ) -> Option<String> {
        let server = answer.and_then(Message::result).and_then(translate::agreed)?;
        let asked = handshake.param_text(Param::ProtocolVersion).unwrap_or_default();
        let Some(client) = Revision::parse(&asked).filter(|revision| !revision.is_stateless()) else {
            known.handshake = Some(server);
            return None;
        };
        if server.is_stateless() {
            // That is no revision for a session, and the client will say so.
            return None;
        }
        self.told.learn(client, server);
        known.between = Between::agreed(&asked, answer?);
        known.between.and_then(|_| settled(answer?, &asked))
    }
}

/// What a client is told instead of a body that does not answer its request.
fn unanswered(head: &mut http::response::Parts, text: &Bytes, request: &Message) -> Option<String> {
    let id = request.owned_id()?;
    let problem = match Message::read(text.clone()) {
        Ok(message) if is_answer(&message, id.as_json()) => return None,
        Ok(message) if message.kind() == Kind::Response => Problem::OtherId,
        _ if text.trim_ascii().is_empty() => Problem::Empty,
        _ => Problem::NoAnswer,
    };
    let fault = Said::new(head.status, &head.headers).fault(request.method(), problem);
    head.status = StatusCode::OK;
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Some(fault.answer(Some(&id)))
}

/// The answer to a handshake with the revision that the client asked for by this name.
pub(super) fn settled(answer: &Message, asked: &str) -> Option<String> {
    json::set(answer.as_str(), &["result", "protocolVersion"], &json::quote(asked)).ok()
}

impl Change for Between {
    async fn event(&mut self, event: Bytes) -> Bytes {
        self.adapted(event)
    }
}

/// An event that carries nothing, so that clients only learn from it what to come back with.
fn without_data(event: &Event<'_>) -> Bytes {
    let mut text = Vec::new();
    if let Some(id) = event.id {
        text.extend_from_slice(&[&b"id: "[..], id, b"\n"].concat());
    }
    if let Some(retry) = event.retry {
        text.extend_from_slice(format!("retry: {retry}\n").as_bytes());
    }
    text.push(b'\n');
    text.into()
}

fn broken(error: BodyError) -> Body {
    Body::stream(futures::stream::once(std::future::ready(Err(error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_words_of_the_client() {
        let between = Between { client: Revision::March2025, server: Revision::November2025 };
        let link = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link","name":"n","uri":"u"}]}}"#;
        let told = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"n: u"}]}}"#;
        for (event, expected) in [
            (format!("id: 1\nevent: message\ndata: {link}\n\n"), format!("id: 1\nevent: message\ndata: {told}\n\n")),
            (format!("event: other\ndata: {link}\n\n"), format!("event: other\ndata: {link}\n\n")),
            ("id: 0\ndata: \n\n".to_owned(), "id: 0\n\n".to_owned()),
            (": alive\n\n".to_owned(), ": alive\n\n".to_owned()),
        ] {
            assert_eq!(between.adapted(event.into()), expected);
        }
    }

    #[test]
    fn what_a_server_answers_is_learned_by_what_it_was_asked() {
        let told = Told::default();
        told.learn(Revision::June2025, Revision::November2025);
        let between = Between { client: Revision::June2025, server: Revision::November2025 };
        assert_eq!(told.between(Revision::June2025), Some(between));
        assert_eq!(told.between(Revision::March2025), None);
        told.learn(Revision::June2025, Revision::June2025);
        assert_eq!(told.between(Revision::June2025), None);
    }
}
