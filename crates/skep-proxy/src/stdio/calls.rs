//! Requests that wait for the server, each under an id of ours.

mod ticket;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use skep_mcp::fault::{Fault, TRANSPORT_ERROR};
use skep_mcp::json::{self, Span};
use skep_mcp::{Id, Message, MetaKey, Param, Revision, method, translate};
use tokio::sync::mpsc;

pub(super) use self::ticket::Ticket;
use super::audience::Audience;
use super::caller::Caller;
use super::events::{End, EventStream};
use super::mirrors::Mirrors;
use crate::eras::alone::Alone;

/// All requests that are under way.
#[derive(Debug)]
pub(super) struct Calls {
    audience: Audience,
    waiting: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
    outgoing: mpsc::Sender<Bytes>,
    patience: Duration,
    mirrors: Arc<Mirrors>,
    /// The revision that the server speaks, once a handshake has told.
    revision: Mutex<Revision>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Call {
    /// The session of the client that asks, if it has one.
    owner: Option<Arc<str>>,
    /// What the client knows it by.
    id: Id,
    /// What the client wants progress reported under.
    token: Option<Box<str>>,
    stream: Arc<EventStream>,
    /// Whether the stream is over with the answer.
    ends_stream: bool,
    /// Whether it stays open until it is called off.
    is_listening: bool,
    /// Whether the answer lists tools.
    lists_tools: bool,
    /// The revision of whoever reads the answer, if that is older than the server's.
    older: Option<Revision>,
    /// What the answer is looked at with, when the server is of the same era and requests stand alone.
    alone: Option<Alone>,
    deadline: Option<Instant>,
}

/// The server does not read fast enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full;

/// Ids stay below 2^50, so that they are exact in every language and have room to grow.
const UNUSED_BITS: u32 = 14;

impl Calls {
    pub(super) fn new(outgoing: mpsc::Sender<Bytes>, patience: Duration, audience: Audience) -> Arc<Self> {
        let mirrors = Arc::default();
        // While a proxy takes the place of another both are attached to one server, and hear each other's answers. They
        // must not take them for their own.
        let (first, _) = uuid::Uuid::new_v4().as_u64_pair();
        let next = AtomicU64::new(first >> UNUSED_BITS);
        let revision = Mutex::new(Revision::NEWEST_WITH_HANDSHAKE);
        Arc::new(Self { audience, waiting: Mutex::default(), next, outgoing, patience, mirrors, revision })
    }

    /// Sends a request. What comes back for it goes to the stream, which is over with the answer if `ends_stream`.
    pub(super) fn begin(
        self: &Arc<Self>,
        message: &Message,
        caller: Caller<'_>,
        stream: &Arc<EventStream>,
        ends_stream: bool,
    ) -> Result<Ticket, Full> {
        let older = caller.revision.filter(|revision| *revision < *self.revision.lock());
        self.send_call(message, |call| Call { owner: caller.session.cloned(), older, ends_stream, ..call }, stream)
    }

    /// The same for a request that stands alone, as a client of such a server sent it.
    pub(super) fn begin_alone(
        self: &Arc<Self>,
        message: &Message,
        stream: &Arc<EventStream>,
        alone: Alone,
    ) -> Result<Ticket, Full> {
        self.send_call(message, |call| Call { alone: Some(alone), ..call }, stream)
    }

    fn send_call(
        self: &Arc<Self>,
        message: &Message,
        finish: impl FnOnce(Call) -> Call,
        stream: &Arc<EventStream>,
    ) -> Result<Ticket, Full> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let is_listening = message.method() == method::LISTEN;
        let call = finish(Call {
            owner: None,
            id: message.owned_id().unwrap_or_else(|| Id::from(number)),
            token: message.meta(MetaKey::ProgressToken).map(Into::into),
            stream: Arc::clone(stream),
            ends_stream: true,
            is_listening,
            lists_tools: message.method() == method::TOOLS_LIST,
            older: None,
            alone: None,
            deadline: (!is_listening).then(|| Instant::now() + self.patience),
        });
        // It waits before it is sent, because the answer may be faster than we are.
        self.waiting.lock().insert(number, call);
        if self.send(self.passed(message, number)).is_err() {
            self.waiting.lock().remove(&number);
            return Err(Full);
        }
        Ok(Ticket::new(self, number))
    }

    /// A request as the server gets it. What it does for clients that share it, it does within a call: whoever has its
    /// tasks has those of all.
    fn passed(&self, message: &Message, number: u64) -> Bytes {
        let is_task = self.audience == Audience::Everybody && message.param(Param::Task).is_some();
        let call = is_task.then(|| json::remove(message.as_str(), &["params", Param::Task.name()]).ok().flatten());
        let call = call.flatten().map(Bytes::from).or_else(|| translate::request_for(message, *self.revision.lock()));
        let call = call.and_then(|text| Message::read(text).ok());
        call.as_ref().unwrap_or(message).renumbered(number)
    }

    /// A handshake has told which revision the server speaks.
    pub(super) fn speak(&self, revision: Revision) {
        *self.revision.lock() = revision;
    }

    /// The tools whose calls repeat arguments in headers.
    pub(super) fn mirrors(&self) -> &Arc<Mirrors> {
        &self.mirrors
    }

    /// Sends something that has no answer.
    pub(super) fn send(&self, mut line: Bytes) -> Result<(), Full> {
        // A message is a line, so that it may not have any within it. In JSON they are never more than space.
        if line.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            line = line.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        }
        self.outgoing.try_send(line).map_err(|_| Full)
    }

    /// What the server knows the request by that a session knows by this id.
    pub(super) fn find(&self, owner: &str, id: &str) -> Option<u64> {
        let waiting = self.waiting.lock();
        let is_it = |call: &Call| call.owner.as_deref() == Some(owner) && call.id.means(id);
        waiting.iter().find(|(_, call)| is_it(call)).map(|(number, _)| *number)
    }

    /// Calls a request off, if it still waits.
    pub(super) fn cancel(&self, number: u64) {
        if let Some(call) = self.waiting.lock().remove(&number) {
            if call.ends_stream {
                call.stream.end(None, End::Closed);
            }
            self.tell_cancelled(number, "nobody waits for it any more");
        }
    }

    fn tell_cancelled(&self, number: u64, reason: &str) {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"{}","params":{{"requestId":{number},"reason":"{reason}"}}}}"#,
            method::CANCELLED
        );
        if self.send(line.into()).is_err() {
            tracing::debug!(number, "the server does not read, so that a call could not be called off");
        }
    }

    /// Hands an answer to whoever asked. One that nobody waits for is lost, and then the answer is no.
    pub(super) fn answered(&self, message: &Message) -> bool {
        let call = message.id().and_then(|id| id.parse::<u64>().ok()).and_then(|id| self.waiting.lock().remove(&id));
        let (Some(call), Some(id)) = (call, message.id_span()) else { return false };
        if let Some(list) = message.result().filter(|_| call.lists_tools) {
            self.mirrors.learn(list);
        }
        let mut answer = message.with([(id, call.id.as_json().as_bytes())]);
        if let Some(revision) = call.older {
            answer = older(answer, revision);
        }
        let mut code = error_code(message);
        if let Some(alone) = &call.alone
            && let Some(changed) = Message::read(answer.clone()).ok().and_then(|answer| alone.message(&answer))
        {
            code = Message::read(changed.clone()).ok().as_ref().and_then(error_code);
            answer = changed;
        }
        if call.is_listening {
            answer = name_listener(&answer, &["result", "_meta"], &call.id);
        }
        if call.ends_stream {
            call.stream.end(Some(answer), code.map_or(End::Answered, End::Refused));
        } else {
            call.stream.push(answer);
        }
        true
    }

    /// Hands on what is reported about a request. `place` is where its number is, and `json` that number.
    pub(super) fn reported(&self, message: &Message, place: Span, json: &str) -> bool {
        let Ok(number) = json.parse::<u64>() else { return false };
        let waiting = self.waiting.lock();
        let Some(call) = waiting.get(&number) else { return false };
        let restored = match (&call.token, call.is_listening) {
            (_, true) => call.id.as_json(),
            (Some(token), false) => token,
            (None, false) => return false,
        };
        call.stream.offer(message.with([(place, restored.as_bytes())]));
        true
    }

    /// The stream of the request that was made last, among those whose clients hear more than the answer.
    pub(super) fn newest_stream(&self) -> Option<Arc<EventStream>> {
        let waiting = self.waiting.lock();
        let heard = waiting.iter().filter(|(_, call)| !call.ends_stream || call.stream.is_resumable());
        heard.max_by_key(|(number, _)| **number).map(|(_, call)| Arc::clone(&call.stream))
    }

    /// Gives all requests that wait so long from now on, at least.
    pub(super) fn extend(&self, patience: Duration) {
        let until = Instant::now() + patience;
        for call in self.waiting.lock().values_mut() {
            call.deadline = call.deadline.map(|deadline| deadline.max(until));
        }
    }

    /// Ends the requests that have waited too long.
    pub(super) fn expire(&self, now: Instant) {
        let mut expired = Vec::new();
        self.waiting.lock().retain(|number, call| {
            let is_late = call.deadline.is_some_and(|deadline| deadline <= now);
            if is_late {
                expired.push(*number);
                call.fail(&Fault::new(TRANSPORT_ERROR, "Timeout"), End::TimedOut);
            }
            !is_late
        });
        for number in expired {
            self.tell_cancelled(number, "it took too long");
        }
    }

    /// Ends all requests that wait, in the same way.
    pub(super) fn fail_all(&self, fault: &Fault, end: End) {
        let failed = std::mem::take(&mut *self.waiting.lock());
        for call in failed.into_values() {
            call.fail(fault, end);
        }
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }
}

impl Call {
    fn fail(&self, fault: &Fault, end: End) {
        let answer = Bytes::from(fault.answer(Some(&self.id)));
        if self.ends_stream {
            self.stream.end(Some(answer), end);
        } else {
            self.stream.push(answer);
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

#[cfg(test)]
mod tests;
