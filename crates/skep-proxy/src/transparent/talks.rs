//! Clients of HTTP+SSE before a server that speaks it, too, but another revision: each is told its own.
//!
//! A message goes to an address, and its answer comes on the stream that announced the address. What the one learns is here
//! for the other.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use parking_lot::Mutex;
use skep_mcp::sse::Event;
use skep_mcp::{Kind, Message, Param, Payload, method};

use super::between::{Between, settled};
use crate::passing;

/// The streams that are open, by the path and query of the address that each of them announced.
#[derive(Debug, Default)]
pub(super) struct Talks(Mutex<HashMap<String, Arc<Mutex<Stage>>>>);

/// How far the two sides of a stream have come.
#[derive(Debug, Default)]
enum Stage {
    /// Nothing is to be done: there was no handshake yet, or both speak the same.
    #[default]
    Same,
    /// The client has sent this handshake.
    Asked(Message),
    /// They speak different revisions.
    Between(Between),
}

impl Talks {
    /// A stream has announced this address.
    pub(super) fn open(self: &Arc<Self>, address: &str) -> Option<Talk> {
        let address = key(&address.parse().ok()?)?;
        let stage = Arc::default();
        self.0.lock().insert(address.clone(), Arc::clone(&stage));
        Some(Talk { talks: Arc::clone(self), address, stage })
    }

    /// A message is on its way to this address. Tells what is between the two sides, if there is anything.
    pub(super) fn send(&self, address: &Uri, payload: Option<&Payload>) -> Option<Between> {
        let Some(Payload::Single(message)) = payload else { return None };
        let stage = Arc::clone(self.0.lock().get(&key(address)?)?);
        let mut stage = stage.lock();
        if message.method() == method::INITIALIZE {
            *stage = Stage::Asked(message.clone());
        }
        match *stage {
            Stage::Between(between) => Some(between),
            Stage::Same | Stage::Asked(_) => None,
        }
    }
}

fn key(address: &Uri) -> Option<String> {
    address.path_and_query().map(ToString::to_string)
}

/// The stream of one client, for as long as it is open.
#[derive(Debug)]
pub(super) struct Talk {
    talks: Arc<Talks>,
    address: String,
    stage: Arc<Mutex<Stage>>,
}

impl Talk {
    /// An event as the client understands it.
    pub(super) fn event(&self, event: Bytes) -> Bytes {
        let mut stage = self.stage.lock();
        match &*stage {
            Stage::Same => event,
            Stage::Between(between) => between.adapted(event),
            Stage::Asked(handshake) => {
                let read = Event::read(&event);
                let data = read.data.as_deref().filter(|_| read.is_message()).map(Bytes::copy_from_slice);
                let answer = data.and_then(|data| Message::read(data).ok());
                let is_meant =
                    |answer: &Message| answer.kind() == Kind::Response && answer.owned_id() == handshake.owned_id();
                let Some(answer) = answer.filter(is_meant) else { return event };
                let asked = handshake.param_text(Param::ProtocolVersion).unwrap_or_default().into_owned();
                let Some(between) = Between::agreed(&asked, &answer) else {
                    *stage = Stage::Same;
                    return event;
                };
                *stage = Stage::Between(between);
                match settled(&answer, &asked) {
                    Some(told) => passing::with_data(&event, told.as_bytes()),
                    None => event,
                }
            }
        }
    }

    /// Whether events have to be held as a whole, because they may be changed.
    pub(super) fn holds_events(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Between(between) if between.is_older_client())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let mut talks = self.talks.0.lock();
        // Somebody may have announced the same address since.
        if talks.get(&self.address).is_some_and(|stage| Arc::ptr_eq(stage, &self.stage)) {
            talks.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "/messages?sessionId=1";

    fn send(talks: &Talks, message: &'static str) -> Option<Between> {
        let message = Message::read(Bytes::from_static(message.as_bytes())).unwrap();
        talks.send(&Uri::from_static(ADDRESS), Some(&Payload::Single(message)))
    }

    fn told(talk: &Talk, data: &str) -> String {
        let event = talk.event(format!("event: message\ndata: {data}\n\n").into());
        String::from_utf8(event.to_vec()).unwrap().lines().nth(1).unwrap().replace("data: ", "")
    }

    const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#;
    const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#;

    #[test]
    fn each_side_is_told_its_own_revision() {
        let talks = Arc::new(Talks::default());
        let talk = talks.open(&format!("http://server:8080{ADDRESS}")).unwrap();
        assert_eq!(send(&talks, CALL), None);
        assert_eq!(send(&talks, ASKED), None);
        // An answer to something else settles nothing.
        let other = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(told(&talk, other), other);
        assert!(!talk.holds_events());
        let answer =
            |revision: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}"}}}}"#);
        assert_eq!(told(&talk, &answer("2025-11-25")), answer("2024-11-05"));
        assert!(talk.holds_events());
        let between = send(&talks, CALL).unwrap();
        assert_eq!((between.client.text(), between.server.text()), ("2024-11-05", "2025-11-25"));
        let linked = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"resource_link","name":"n","uri":"u"}]}}"#;
        assert!(told(&talk, linked).contains(r#"{"type":"text","text":"n: u"}"#));

        send(&talks, ASKED);
        assert_eq!(told(&talk, &answer("2024-11-05")), answer("2024-11-05"));
        assert_eq!(told(&talk, linked), linked, "both speak the same");
        drop(talk);
        assert!(talks.0.lock().is_empty());
    }
}
