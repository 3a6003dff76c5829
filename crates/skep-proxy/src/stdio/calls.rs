//! Requests that wait for the server, each under an id of ours.

mod call;
mod ticket;
mod unsent;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, TRANSPORT_ERROR};
use skep_mcp::json::{self, Span};
use skep_mcp::{Id, Message, MetaKey, Param, Revision, method, translate};
use tokio::sync::oneshot;

use self::call::Call;
pub(super) use self::ticket::Ticket;
pub(super) use self::unsent::Unsent;
use super::audience::Audience;
use super::caller::Caller;
use super::events::{End, EventStream};
use super::mirrors::Mirrors;
use super::outbox::{Full, Outbox, Room};
use crate::budget::Budget;
use crate::eras::alone::Alone;
use crate::lapses::Lapses;
use crate::reply::STOPPING;

/// All requests that are under way.
#[derive(Debug)]
pub(super) struct Calls {
    audience: Audience,
    waiting: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
    outgoing: Outbox,
    patience: Duration,
    mirrors: Arc<Mirrors>,
    /// The revision that the server speaks, once a handshake has told.
    revision: Mutex<Revision>,
    /// Whether the server has answered what a client asked.
    has_served: AtomicBool,
    /// How many servers there were before.
    losses: AtomicU64,
    /// Whether nobody will answer any more.
    is_closed: AtomicBool,
    /// Requests that could not be sent.
    unread: Lapses,
    /// For answers that are large.
    held: Budget,
}

/// Requests that have waited too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    /// Those that are to be called off.
    pub(super) numbers: Vec<u64>,
    /// How many handshakes there were besides.
    pub(super) handshakes: usize,
}

/// Ids stay below 2^50, so that they are exact in every language and have room to grow.
const UNUSED_BITS: u32 = 14;

impl Calls {
    pub(super) fn new(outgoing: Outbox, patience: Duration, audience: Audience, held: Budget) -> Arc<Self> {
        let mirrors = Arc::default();
        // While a proxy takes the place of another both are attached to one server, and hear each other's answers. They
        // must not take them for their own.
        let (first, _) = uuid::Uuid::new_v4().as_u64_pair();
        let next = AtomicU64::new(first >> UNUSED_BITS);
        let revision = Mutex::new(Revision::NEWEST_WITH_HANDSHAKE);
        Arc::new(Self {
            audience,
            waiting: Mutex::default(),
            next,
            outgoing,
            patience,
            mirrors,
            revision,
            has_served: AtomicBool::new(false),
            losses: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            unread: Lapses::default(),
            held,
        })
    }

    /// Sends a request, as soon as the server has read enough for it. What comes back goes to the stream, which is over with
    /// the answer if `ends_stream`. Whoever stops to wait has not asked.
    pub(super) async fn begin(
        self: &Arc<Self>,
        message: &Message,
        caller: Caller<'_>,
        stream: &Arc<EventStream>,
        ends_stream: bool,
    ) -> Result<Ticket, Unsent> {
        let older = caller.revision.filter(|revision| *revision < *self.revision.lock());
        let share = caller.client.map(|client| client.load().take(kept_bytes(message))).transpose()?;
        let owed = (!ends_stream).then(|| stream.owe());
        let owner = caller.client.map(|client| Arc::clone(&client.id));
        Ok(self.send_call(message, |call| Call { owner, share, owed, older, ..call }, stream).await?)
    }

    /// The same for a request that stands alone, as a client of such a server sent it.
    pub(super) async fn begin_alone(
        self: &Arc<Self>,
        message: &Message,
        stream: &Arc<EventStream>,
        alone: Alone,
    ) -> Result<Ticket, Unsent> {
        Ok(self.send_call(message, |call| Call { alone: Some(alone), ..call }, stream).await?)
    }

    async fn send_call(
        self: &Arc<Self>,
        message: &Message,
        finish: impl FnOnce(Call) -> Call,
        stream: &Arc<EventStream>,
    ) -> Result<Ticket, Full> {
        let (number, line) = self.await_answer(message, finish, stream);
        let ticket = Ticket::new(self, number);
        // Most of the time there is room.
        if self.outgoing.send(line).is_err() {
            self.send_in_turn(number, message).await?;
        }
        Ok(ticket)
    }

    /// Sends a request when the server has read enough, unless it is called off before. Then whoever asked was told.
    async fn send_in_turn(&self, number: u64, message: &Message) -> Result<(), Full> {
        let (held_back, called_off) = oneshot::channel();
        match self.waiting.lock().get_mut(&number) {
            Some(call) => call.held_back = Some(held_back),
            None => return Ok(()),
        }
        tokio::select! {
            biased;
            // Whoever asked was told.
            _ = called_off => {}
            room = self.turn(message.text().len()) => {
                let room = room.inspect_err(|Full| self.warn_unread())?;
                let line = self.passed(message, number);
                if self.waiting.lock().get_mut(&number).is_some_and(|call| call.held_back.take().is_some()) {
                    room.send(line);
                }
            }
        }
        Ok(())
    }

    /// Waits for room for what a client says, as long as a request may take. What was meant for a server that is gone by
    /// then is not for its successor.
    async fn turn(&self, bytes: usize) -> Result<Room<'_>, Full> {
        let losses = self.losses.load(Ordering::Relaxed);
        let room = tokio::time::timeout(self.patience, self.outgoing.turn(bytes)).await.unwrap_or(Err(Full))?;
        if self.losses.load(Ordering::Relaxed) == losses { Ok(room) } else { Err(Full) }
    }

    fn warn_unread(&self) {
        if let Some(times) = self.unread.failed() {
            tracing::warn!(times, "the MCP server does not read fast enough; what clients say is not sent");
        }
    }

    /// Asks for something whose answer nobody needs, and which the server has to hear although clients are told to wait.
    pub(super) fn tell(&self, request: &Message) -> Result<(), Full> {
        let (number, line) = self.await_nothing(request);
        self.sent(number, self.outgoing.insist(line))
    }

    /// Waits until the server has read enough to be told something else.
    pub(super) async fn room(&self) -> Result<Room<'_>, Full> {
        self.outgoing.room().await
    }

    /// Asks for something whose answer nobody needs, where there is room for it.
    pub(super) fn tell_in(&self, room: Room<'_>, request: &Message) {
        let (_, line) = self.await_nothing(request);
        room.send(line);
    }

    /// The same as [`Calls::await_answer`] for a request of our own, whose answer nobody needs.
    fn await_nothing(&self, request: &Message) -> (u64, Bytes) {
        self.await_answer(request, |call| Call { is_ours: true, ..call }, &EventStream::new(0, false))
    }

    /// What is not sent has no answer.
    fn sent(&self, number: u64, sent: Result<(), Full>) -> Result<(), Full> {
        sent.inspect_err(|Full| drop(self.waiting.lock().remove(&number)))
    }

    /// Waits for the answer to a request before that is sent, because the answer may be faster than we are. Gives its number
    /// and what to send.
    fn await_answer(
        &self,
        message: &Message,
        finish: impl FnOnce(Call) -> Call,
        stream: &Arc<EventStream>,
    ) -> (u64, Bytes) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (begun, is_listening) = (Instant::now(), message.method() == method::LISTEN);
        let call = finish(Call {
            owner: None,
            share: None,
            id: message.owned_id().unwrap_or_else(|| Id::from(number)),
            token: message.meta(MetaKey::ProgressToken).map(Into::into),
            stream: Arc::clone(stream),
            owed: None,
            is_listening,
            is_handshake: message.method() == method::INITIALIZE,
            is_ours: matches!(message.method(), method::INITIALIZE | method::DISCOVER),
            lists_tools: message.method() == method::TOOLS_LIST,
            older: None,
            alone: None,
            held_back: None,
            begun,
            deadline: (!is_listening).then(|| begun + self.patience),
        });
        self.waiting.lock().insert(number, call);
        // Whoever closes it looks at all who wait after that is known.
        if self.is_closed.load(Ordering::Relaxed)
            && let Some(call) = self.waiting.lock().remove(&number)
        {
            call.fail(&Fault::new(TRANSPORT_ERROR, STOPPING), End::Stopped);
        }
        (number, self.passed(message, number))
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

    /// Sends something that has no answer, as soon as the server has read enough for it.
    pub(super) async fn send(&self, line: Bytes) -> Result<(), Full> {
        self.turn(line.len()).await.inspect_err(|Full| self.warn_unread()).map(|room| room.send(line))
    }

    /// Sends something that has no answer and that the server has to hear although clients are told to wait.
    pub(super) fn insist(&self, line: Bytes) -> Result<(), Full> {
        self.outgoing.insist(line)
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
            if call.ends_stream() {
                call.stream.end(None, End::Closed);
            }
            if call.is_to_be_called_off() {
                self.tell_cancelled(number, "nobody waits for it any more");
            }
        }
    }

    /// Calls off all requests of a session that has ended.
    pub(super) fn leave(&self, owner: &str) {
        let is_its = |call: &Call| call.owner.as_deref() == Some(owner);
        let left: Vec<_> = self.waiting.lock().extract_if(|_, call| is_its(call)).collect();
        for (number, call) in left {
            call.fail(&Fault::new(INTERNAL_ERROR, "the session has ended"), End::Closed);
            if call.is_to_be_called_off() {
                self.tell_cancelled(number, "its session has ended");
            }
        }
    }

    fn tell_cancelled(&self, number: u64, reason: &str) {
        if self.outgoing.insist(cancellation(number, reason)).is_err() {
            tracing::debug!(number, "the server does not read, so that a call could not be called off");
        }
    }

    /// Whether the server has answered what a client asked, since this was last asked.
    pub(super) fn has_served(&self) -> bool {
        self.has_served.swap(false, Ordering::Relaxed)
    }

    /// Hands an answer to whoever asked. One that nobody waits for is lost, and then the answer is no.
    pub(super) fn answered(&self, message: &Message) -> bool {
        let call = message.id().and_then(|id| id.parse::<u64>().ok()).and_then(|id| self.waiting.lock().remove(&id));
        let (Some(call), Some(id)) = (call, message.id_span()) else { return false };
        if let Some(list) = message.result().filter(|_| call.lists_tools) {
            self.mirrors.learn(list);
        }
        // It is written once, and not for each of them.
        if !call.is_ours && !self.has_served.load(Ordering::Relaxed) {
            self.has_served.store(true, Ordering::Relaxed);
        }
        call.answer(message, id, &self.held);
        true
    }

    /// Tells whoever asked that there was an answer, and why it is lost. Whether somebody waits for it.
    pub(super) fn unreadable(&self, number: u64, fault: &Fault) -> bool {
        let call = self.waiting.lock().remove(&number);
        call.inspect(|call| call.fail(fault, End::Refused(fault.code))).is_some()
    }

    /// Hands on what is reported about a request. `place` is where its number is, and `json` that number.
    pub(super) fn reported(&self, message: &Message, place: Span, json: &str) -> bool {
        // Some servers write as text what was a number.
        let written = json.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(json);
        let Ok(number) = written.parse::<u64>() else { return false };
        let waiting = self.waiting.lock();
        let Some(call) = waiting.get(&number) else { return false };
        let restored = match (&call.token, call.is_listening) {
            (_, true) => call.id.as_json(),
            (Some(token), false) => token,
            (None, false) => return false,
        };
        let text = message.with([(place, restored.as_bytes())]);
        call.stream.offer(call.looked_at(text));
        true
    }

    /// The stream of the request that was made last, among those whose clients hear more than the answer.
    pub(super) fn newest_stream(&self) -> Option<Arc<EventStream>> {
        let waiting = self.waiting.lock();
        let heard = waiting.iter().filter(|(_, call)| !call.ends_stream() || call.stream.is_resumable());
        heard.max_by_key(|(number, _)| **number).map(|(_, call)| Arc::clone(&call.stream))
    }

    /// Gives all requests that wait so long from now on, at least.
    pub(super) fn extend(&self, patience: Duration) {
        let until = Instant::now() + patience;
        for call in self.waiting.lock().values_mut() {
            call.deadline = call.deadline.map(|deadline| deadline.max(until));
        }
    }

    /// Ends the requests that have waited too long, and gives the numbers of those that are to be called off.
    pub(super) fn expire(&self, now: Instant) -> Expired {
        let mut expired = Expired::default();
        self.waiting.lock().retain(|number, call| {
            // Whoever waits to send one knows how long.
            let is_late = call.is_sent() && call.deadline.is_some_and(|deadline| deadline <= now);
            if is_late {
                if call.is_to_be_called_off() {
                    expired.numbers.push(*number);
                } else {
                    expired.handshakes += 1;
                }
                call.fail(&call.timeout(), End::TimedOut);
            }
            !is_late
        });
        expired
    }

    /// Calls requests off that took too long, as fast as the server reads.
    pub(super) async fn call_off(&self, expired: Vec<u64>) {
        for number in expired {
            let Ok(room) = self.room().await else { return };
            room.send(cancellation(number, "it took too long"));
        }
    }

    /// The server is gone, and with it everything that it was asked.
    pub(super) fn lose(&self, fault: &Fault) {
        self.losses.fetch_add(1, Ordering::Relaxed);
        self.fail_all(fault, End::Lost);
    }

    /// Ends everything: nobody will answer any more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.fail_all(&Fault::new(TRANSPORT_ERROR, STOPPING), End::Stopped);
    }

    /// Ends all requests that wait, in the same way.
    fn fail_all(&self, fault: &Fault, end: End) {
        let failed = std::mem::take(&mut *self.waiting.lock());
        for call in failed.into_values() {
            call.fail(fault, end);
        }
    }

    /// Whether nobody waits for an answer, and the server has been told everything.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.lock().is_empty() && self.outgoing.is_empty()
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }
}

fn cancellation(number: u64, reason: &str) -> Bytes {
    let params = format!(r#"{{"requestId":{number},"reason":"{reason}"}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, method::CANCELLED).into()
}

/// The bytes of a request that are kept until its answer.
fn kept_bytes(message: &Message) -> usize {
    message.id().map_or(0, str::len) + message.meta(MetaKey::ProgressToken).map_or(0, str::len)
}

#[cfg(test)]
mod tests;
