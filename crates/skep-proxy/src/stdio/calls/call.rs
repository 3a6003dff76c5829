//! One request that waits for its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, TRANSPORT_ERROR};
use skep_mcp::json;
use skep_mcp::{Id, Message, MetaKey, Revision, translate};
use tokio::sync::oneshot;

use crate::budget::{Budget, Held};
use crate::eras::alone::Alone;
use crate::stdio::events::{End, EventStream, Owed};
use crate::stdio::load::Share;

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct Call {
    /// The session of the client that asks, if it has one.
    pub(super) owner: Option<Arc<str>>,
    /// The room that it has in that session.
    #[expect(dead_code, reason = "it is held")]
    pub(super) share: Option<Share>,
    /// What the client knows it by.
    pub(super) id: Id,
    /// What the client wants progress reported under.
    pub(super) token: Option<Box<str>>,
    pub(super) stream: Arc<EventStream>,
    /// What the stream owes, if it goes on after the answer.
    pub(super) owed: Option<Owed>,
    /// Whether it stays open until it is called off.
    pub(super) is_listening: bool,
    pub(super) is_handshake: bool,
    /// Whether no client has asked for what is answered: the server is told what it has to know, or asked what it is.
    pub(super) is_ours: bool,
    /// Whether the answer lists tools.
    pub(super) lists_tools: bool,
    /// The revision of whoever reads the answer, if that is older than the server's.
    pub(super) older: Option<Revision>,
    /// What the answer is looked at with, when the server is of the same era and requests stand alone.
    pub(super) alone: Option<Alone>,
    /// Tells whoever waits to send it that it is called off, if it was not sent yet.
    pub(super) held_back: Option<oneshot::Sender<Infallible>>,
    pub(super) begun: Instant,
    pub(super) deadline: Option<Instant>,
}

impl Call {
    pub(super) fn is_sent(&self) -> bool {
        self.held_back.is_none()
    }

    /// Whether the server is told when nobody waits for it any more. A handshake must not be called off.
    pub(super) fn is_to_be_called_off(&self) -> bool {
        self.is_sent() && !self.is_handshake
    }

    /// Whether the stream is over with the answer.
    pub(super) fn ends_stream(&self) -> bool {
        self.owed.is_none()
    }

    /// Hands the answer to whoever asked, as that one has to read it. `id` is where its number is. A large one needs room,
    /// because nobody knows how long its client takes to read it.
    pub(super) fn answer(self, message: &Message, id: json::Span, budget: &Budget) {
        let mut answer = message.with([(id, self.id.as_json().as_bytes())]);
        if let Some(revision) = self.older {
            answer = older(answer, revision);
        }
        let mut code = error_code(message);
        if let Some(alone) = &self.alone
            && let Some(changed) = Message::read(answer.clone()).ok().and_then(|answer| alone.message(&answer))
        {
            code = Message::read(changed.clone()).ok().as_ref().and_then(error_code);
            answer = changed;
        }
        if self.is_listening {
            answer = name_listener(&answer, &["result", "_meta"], &self.id);
        }
        let mut held = Held::default();
        if budget.grow(&mut held, answer.len()).is_err() {
            tracing::warn!(bytes = answer.len(), "dropped an answer, because too many bytes are held for clients");
            let told = "the answer is lost: the proxy holds too many bytes for clients that do not read them";
            return self.fail(&Fault::new(INTERNAL_ERROR, told), End::Refused(INTERNAL_ERROR));
        }
        self.give(held.with(answer), code.map_or(End::Answered, End::Refused));
    }

    /// What a listener is told, as it has to read that.
    pub(super) fn looked_at(&self, text: Bytes) -> Bytes {
        let alone = self.alone.as_ref().filter(|_| self.is_listening);
        let changed = alone.and_then(|alone| alone.message(&Message::read(text.clone()).ok()?));
        changed.unwrap_or(text)
    }

    /// What is said when nobody waits any longer. Clients know it by its first word.
    pub(super) fn timeout(&self) -> Fault {
        let waited = self.deadline.unwrap_or(self.begun).duration_since(self.begun);
        // Who had to wait for a person was given time that is no round number.
        let waited = if waited.as_secs() > 0 { Duration::from_secs(waited.as_secs()) } else { waited };
        Fault::new(TRANSPORT_ERROR, format!("Timeout: the MCP server has not answered within {waited:?}"))
    }

    /// Tells whoever asked that there is no answer.
    pub(super) fn fail(&self, fault: &Fault, end: End) {
        self.give(fault.answer(Some(&self.id)).into(), end);
    }

    fn give(&self, answer: Bytes, end: End) {
        if self.ends_stream() {
            self.stream.end(Some(answer), end);
        } else {
            self.stream.answer(answer, Some(&self.id));
        }
    }
}

/// The code of an answer that is an error.
fn error_code(message: &Message) -> Option<i64> {
    message.error().map(translate::error_code)
}

/// An answer in words that an older revision has.
fn older(answer: Bytes, revision: Revision) -> Bytes {
    let changed = std::str::from_utf8(&answer).ok().and_then(|text| translate::answer_for(text, revision));
    changed.map_or(answer, Bytes::from)
}

/// Puts the client's id where ours names the listener.
fn name_listener(answer: &Bytes, meta: &[&str], id: &Id) -> Bytes {
    let Ok(text) = std::str::from_utf8(answer) else { return answer.clone() };
    let path: Vec<&str> = meta.iter().copied().chain([MetaKey::SubscriptionId.name()]).collect();
    match json::find(text, &path) {
        Ok(Some(place)) => json::splice(answer, [(place, id.as_json().as_bytes())]).into(),
        Ok(None) | Err(_) => answer.clone(),
    }
}
