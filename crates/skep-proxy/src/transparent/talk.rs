//! Clients of HTTP+SSE before a server that speaks it, too, but another revision: each is told its own.

use bytes::Bytes;
use parking_lot::Mutex;
use skep_mcp::sse::Event;
use skep_mcp::{Kind, Message, Param, Payload, method};

use super::between::{Between, settled};
use crate::passing;

/// What the two sides of a stream have said to each other.
#[derive(Debug, Default)]
pub(super) struct Talk(Mutex<Stage>);

/// How far they have come.
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

impl Talk {
    /// A message is on its way to the server. Tells what is between the two sides, if there is anything.
    pub(super) fn send(&self, payload: Option<&Payload>) -> Option<Between> {
        let Some(Payload::Single(message)) = payload else { return None };
        let mut stage = self.0.lock();
        if message.method() == method::INITIALIZE {
            *stage = Stage::Asked(message.clone());
        }
        match *stage {
            Stage::Between(between) => Some(between),
            Stage::Same | Stage::Asked(_) => None,
        }
    }

    /// An event as the client understands it.
    pub(super) fn event(&self, event: Bytes) -> Bytes {
        let mut stage = self.0.lock();
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
        matches!(*self.0.lock(), Stage::Between(between) if between.is_older_client())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(talk: &Talk, message: &'static str) -> Option<Between> {
        let message = Message::read(Bytes::from_static(message.as_bytes())).unwrap();
        talk.send(Some(&Payload::Single(message)))
    }

    fn told(talk: &Talk, data: &str) -> String {
        let event = talk.event(format!("event: message\ndata: {data}\n\n").into());
        String::from_utf8(event.to_vec()).unwrap().lines().nth(1).unwrap().replace("data: ", "")
    }

    const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#;
    const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#;

    #[test]
    fn each_side_is_told_its_own_revision() {
        let talk = Talk::default();
        assert_eq!(send(&talk, CALL), None);
        assert_eq!(send(&talk, ASKED), None);
        // An answer to something else settles nothing.
        let other = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(told(&talk, other), other);
        assert!(!talk.holds_events());
        let answer =
            |revision: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}"}}}}"#);
        assert_eq!(told(&talk, &answer("2025-11-25")), answer("2024-11-05"));
        assert!(talk.holds_events());
        let between = send(&talk, CALL).unwrap();
        assert_eq!((between.client.text(), between.server.text()), ("2024-11-05", "2025-11-25"));
        let linked = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"resource_link","name":"n","uri":"u"}]}}"#;
        assert!(told(&talk, linked).contains(r#"{"type":"text","text":"n: u"}"#));

        send(&talk, ASKED);
        assert_eq!(told(&talk, &answer("2024-11-05")), answer("2024-11-05"));
        assert_eq!(told(&talk, linked), linked, "both speak the same");
    }
}
