//! What clients of HTTP+SSE have asked, until the answer comes on the stream of their session.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use parking_lot::Mutex;
use skep_mcp::sse::Event;
use skep_mcp::{Id, Kind, Message, Param, Payload, method};

use super::upstream::resolve;
use crate::open_ended::OpenEnded;

/// Requests of one session that are remembered. A server that never answers must not fill our memory.
const MOST: usize = 256;

/// All sessions whose streams are open, by where their messages go.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<HashMap<Box<str>, Arc<Unanswered>>>);

/// What was asked in one session and is not answered yet, the oldest first.
#[derive(Debug, Default)]
struct Unanswered(Mutex<VecDeque<Id>>);

impl Unanswered {
    fn add(&self, id: Id) {
        let mut ids = self.0.lock();
        if ids.len() >= MOST {
            ids.pop_front();
        }
        ids.push_back(id);
    }

    fn remove(&self, id: &str) {
        self.0.lock().retain(|known| !known.means(id));
    }
}

impl Asked {
    /// Notes a message that is about to be sent to an address.
    pub(super) fn note(&self, uri: &Uri, payload: Option<&Payload>) -> Option<Noted> {
        let Some(Payload::Single(message)) = payload else { return None };
        let session = self.0.lock().get(uri.path_and_query()?.as_str()).cloned()?;
        if let (method::CANCELLED, Some(id)) = (message.method(), message.param(Param::RequestId)) {
            // What is called off is not answered.
            session.remove(id);
        }
        let id = message.owned_id().filter(|_| message.kind() == Kind::Request)?;
        session.add(id.clone());
        Some(Noted { session, id, is_taken: false })
    }

    /// The answers on a stream that was opened at an address.
    pub(super) fn answers(self: &Arc<Self>, stream: Uri) -> Answers {
        Answers { all: Arc::clone(self), stream, messages: None, session: Arc::default(), is_within: false }
    }
}

/// A request that no answer is expected to, unless its server takes it.
#[derive(Debug)]
pub(super) struct Noted {
    session: Arc<Unanswered>,
    id: Id,
    is_taken: bool,
}

impl Noted {
    /// The server will answer it.
    pub(super) fn keep(mut self) {
        self.is_taken = true;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if !self.is_taken {
            self.session.remove(self.id.as_json());
        }
    }
}

/// The stream of a session, as far as answers are concerned.
#[derive(Debug)]
pub(super) struct Answers {
    all: Arc<Asked>,
    /// Where the client has opened it.
    stream: Uri,
    /// Where the messages of the session go, once the server has said so.
    messages: Option<Box<str>>,
    session: Arc<Unanswered>,
    /// Whether an event passes in parts.
    is_within: bool,
}

impl Answers {
    /// An event passes.
    pub(super) fn see(&mut self, event: &Event<'_>) {
        self.is_within = false;
        let Some(data) = event.data.as_deref() else { return };
        if event.name == Some(b"endpoint") {
            self.open(data);
        } else if event.is_message()
            && !self.session.0.lock().is_empty()
            && let Ok(message) = Message::read(Bytes::copy_from_slice(data))
            && message.kind() == Kind::Response
        {
            message.id().into_iter().for_each(|id| self.session.remove(id));
        }
    }

    /// A part of an event passes that is too large to be read. Most such events are answers, and most clients ask one
    /// thing after the other, so it counts as the answer to the oldest request.
    pub(super) fn see_part(&mut self) {
        if !std::mem::replace(&mut self.is_within, true) {
            self.session.0.lock().pop_front();
        }
    }

    /// The server says where messages go.
    fn open(&mut self, address: &[u8]) {
        let Ok(address) = std::str::from_utf8(address) else { return };
        // Whichever host it names, clients reach it through us.
        let place = if address.contains("://") { address.parse().ok() } else { resolve(&self.stream, address) };
        let place = place.as_ref().and_then(Uri::path_and_query).map(|place| Box::<str>::from(place.as_str()));
        if let Some(place) = place.filter(|_| self.messages.is_none()) {
            self.all.0.lock().insert(place.clone(), Arc::clone(&self.session));
            self.messages = Some(place);
        }
    }

    /// What the stream is: it ends with the proxy, after the answers that are still to come.
    pub(super) fn open_ended(&self) -> OpenEnded {
        let session = Arc::clone(&self.session);
        OpenEnded::with_answers(move || !session.0.lock().is_empty())
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(messages) = &self.messages {
            self.all.0.lock().remove(messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Event<'_> {
        Event::read(text.as_bytes())
    }

    fn payload(text: &str) -> Payload {
        Payload::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_session_is_owed_what_its_server_took_and_has_not_answered() {
        let asked: Arc<Asked> = Arc::default();
        let post = Uri::from_static("/hive/messages?s=1");
        let request = payload(r#"{"jsonrpc":"2.0","id":"1","method":"tools/list"}"#);
        assert!(asked.note(&post, Some(&request)).is_none(), "nobody would hear the answer");
        let mut answers = asked.answers(Uri::from_static("http://a/hive/sse"));
        answers.see(&event("event: endpoint\ndata: messages?s=1\n\n"));
        let owed = |answers: &Answers| answers.session.0.lock().len();

        drop(asked.note(&post, Some(&request)).unwrap());
        assert_eq!(owed(&answers), 0, "the server refused it");
        asked.note(&post, Some(&request)).unwrap().keep();
        answers.see(&event("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"));
        answers.see(&event("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
        assert_eq!(owed(&answers), 1, "that is the answer to another one");
        answers.see(&event("data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n\n"));
        assert_eq!(owed(&answers), 0);

        asked.note(&post, Some(&request)).unwrap().keep();
        let off = payload(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}"#);
        assert!(asked.note(&post, Some(&off)).is_none());
        assert_eq!(owed(&answers), 0);

        for _ in 0..2 * MOST {
            asked.note(&post, Some(&request)).unwrap().keep();
        }
        assert_eq!(owed(&answers), MOST);
        answers.see_part();
        answers.see_part();
        assert_eq!(owed(&answers), MOST - 1, "one event in two parts");
        drop(answers);
        assert!(asked.0.lock().is_empty());
    }
}
