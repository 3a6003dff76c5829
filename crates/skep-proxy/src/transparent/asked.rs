//! What clients of HTTP+SSE have asked, until the answer comes on the stream of their session.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use skep_mcp::sse::Event;
use skep_mcp::{Id, Kind, Message, Param, Payload, method};

use super::addresses::Stream;
use crate::open_ended::OpenEnded;

/// Requests of one session that are remembered. A server that never answers must not fill our memory.
const MOST: usize = 256;

/// What was asked in one session and is not answered yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unanswered(Mutex<VecDeque<Id>>);

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

    /// An event passes on the stream of the session.
    pub(super) fn see(&self, event: &Event<'_>) {
        if let Some(data) = event.data.as_deref().filter(|_| event.is_message())
            && !self.0.lock().is_empty()
            && let Ok(message) = Message::read(Bytes::copy_from_slice(data))
            && message.kind() == Kind::Response
        {
            message.id().into_iter().for_each(|id| self.remove(id));
        }
    }

    /// An event passes that is too large to be read. Most such events are answers, and most clients ask one thing after the
    /// other, so it counts as the answer to the oldest request.
    pub(super) fn see_large(&self) {
        self.0.lock().pop_front();
    }
}

impl Stream {
    /// Notes a message that is about to be sent.
    pub(super) fn note(self: &Arc<Self>, payload: Option<&Payload>) -> Option<Noted> {
        let Some(Payload::Single(message)) = payload else { return None };
        if let (method::CANCELLED, Some(id)) = (message.method(), message.param(Param::RequestId)) {
            // What is called off is not answered.
            self.unanswered.remove(id);
        }
        let id = message.owned_id().filter(|_| message.kind() == Kind::Request)?;
        self.unanswered.add(id.clone());
        Some(Noted { stream: Arc::clone(self), id, is_taken: false })
    }

    /// What the stream is: it ends with the proxy, after the answers that are still to come.
    pub(super) fn open_ended(self: &Arc<Self>) -> OpenEnded {
        let stream = Arc::clone(self);
        OpenEnded::with_answers(move || !stream.unanswered.0.lock().is_empty())
    }
}

/// A request that no answer is expected to, unless its server takes it.
#[derive(Debug)]
pub(super) struct Noted {
    stream: Arc<Stream>,
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
            self.stream.unanswered.remove(self.id.as_json());
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
        let stream: Arc<Stream> = Arc::default();
        let request = payload(r#"{"jsonrpc":"2.0","id":"1","method":"tools/list"}"#);
        let owed = || stream.unanswered.0.lock().len();

        drop(stream.note(Some(&request)).unwrap());
        assert_eq!(owed(), 0, "the server refused it");
        stream.note(Some(&request)).unwrap().keep();
        stream.unanswered.see(&event("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"));
        stream.unanswered.see(&event("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
        assert_eq!(owed(), 1, "that is the answer to another one");
        stream.unanswered.see(&event("data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n\n"));
        assert_eq!(owed(), 0);

        stream.note(Some(&request)).unwrap().keep();
        let off = payload(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}"#);
        assert!(stream.note(Some(&off)).is_none());
        assert_eq!(owed(), 0);

        for _ in 0..2 * MOST {
            stream.note(Some(&request)).unwrap().keep();
        }
        assert_eq!(owed(), MOST);
        stream.unanswered.see_large();
        assert_eq!(owed(), MOST - 1);
    }
}
