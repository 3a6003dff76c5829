//! Messages on their way to one client, which may lose the stream and come back for the rest.
//!
//! A stream belongs to a request or a session, not to a connection. It numbers its events, keeps the last ones, and has
//! at most one reader: a new one takes over from the one before.

mod reader;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::sse::Frame;
use skep_mcp::{Id, Message};
use tokio::sync::Notify;

use self::reader::Reader;
use crate::body::Body;
use crate::limits;

/// A stream of messages.
#[derive(Debug)]
pub(crate) struct EventStream {
    name: u64,
    /// Whether its events have ids.
    is_resumable: bool,
    /// How many answers are still to come, where it goes on after them.
    owed: AtomicUsize,
    log: Mutex<Log>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Event>,
    bytes: usize,
    next: u64,
    /// Events before this one have been given to a reader.
    delivered: u64,
    /// The reader that may read.
    reader: u64,
    /// Whether that one is there.
    is_open: bool,
    end: Option<(End, Instant)>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    /// A message, or nothing for an event that only has an id.
    data: Bytes,
}

/// An answer that is still to come on a stream.
#[derive(Debug)]
pub(crate) struct Owed(Arc<EventStream>);

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a stream ended. What the client is told about it is its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With the answer.
    Answered,
    /// With an answer that is an error of this code.
    Refused(i64),
    /// The server took too long.
    TimedOut,
    /// The server went away.
    Lost,
    /// Nobody wants it any more.
    Closed,
}

impl Log {
    fn push(&mut self, data: Bytes) {
        self.bytes += data.len();
        self.events.push_back(Event { number: self.next, data });
        self.next += 1;
        self.trim();
    }

    /// Forgets the oldest events that a reader was given.
    fn trim(&mut self) {
        while (self.events.len() > limits::EVENTS_PER_STREAM || self.bytes > limits::EVENT_BYTES_PER_STREAM)
            && self.events.front().is_some_and(|event| event.number < self.delivered)
        {
            if let Some(event) = self.events.pop_front() {
                self.bytes -= event.data.len();
            }
        }
    }

    /// Whether another event may wait for the reader.
    fn has_room(&self) -> bool {
        let waiting = self.next.saturating_sub(self.delivered);
        waiting == 0
            || usize::try_from(waiting).is_ok_and(|waiting| waiting < limits::EVENTS_PER_STREAM)
                && self.bytes < limits::EVENT_BYTES_PER_STREAM
    }
}

impl EventStream {
    pub(crate) fn new(name: u64, is_resumable: bool) -> Arc<Self> {
        let owed = AtomicUsize::new(0);
        Arc::new(Self { name, is_resumable, owed, log: Mutex::default(), changed: Notify::new() })
    }

    pub(crate) fn name(&self) -> u64 {
        self.name
    }

    /// Whether its client reads all of it, and may come back for what it missed.
    pub(crate) fn is_resumable(&self) -> bool {
        self.is_resumable
    }

    /// Says that an answer is still to come, for as long as what is given is kept.
    pub(crate) fn owe(self: &Arc<Self>) -> Owed {
        self.owed.fetch_add(1, Ordering::Relaxed);
        Owed(Arc::clone(self))
    }

    /// Whether an answer is still to come, or has come and was not read.
    pub(crate) fn is_owed(&self) -> bool {
        let log = self.log.lock();
        self.owed.load(Ordering::Relaxed) > 0 || log.delivered < log.next
    }

    /// Begins with an event without a message, which gives the client an id to come back with. A stream that has begun
    /// already needs none.
    pub(crate) fn prime(&self) {
        let mut log = self.log.lock();
        if log.next == 0 {
            log.push(Bytes::new());
        }
    }

    /// Whether somebody has begun to read it.
    pub(crate) fn is_read(&self) -> bool {
        self.log.lock().reader > 0
    }

    /// Whether somebody reads it now.
    pub(crate) fn is_open(&self) -> bool {
        self.log.lock().is_open
    }

    /// Adds a message that must not be lost.
    pub(crate) fn push(&self, message: Bytes) {
        let mut log = self.log.lock();
        if log.end.is_none() {
            log.push(message);
        }
        drop(log);
        self.changed.notify_waiters();
    }

    /// Adds a message that the client can do without when it does not keep up.
    pub(crate) fn offer(&self, message: Bytes) {
        if self.has_room() {
            self.push(message);
        }
    }

    /// Adds an answer to the request of this id. A client that has left too much unread is told only that there was one.
    pub(crate) fn answer(&self, answer: Bytes, id: Option<&Id>) {
        if self.bytes() < limits::UNREAD_ANSWER_BYTES {
            return self.push(answer);
        }
        tracing::warn!(bytes = answer.len(), "dropped an answer, because the client does not read those before it");
        let fault = Fault::new(INTERNAL_ERROR, "the answer is lost: the client has left too many unread");
        self.push(fault.answer(id).into());
    }

    /// Whether the client keeps up.
    pub(crate) fn has_room(&self) -> bool {
        self.log.lock().has_room()
    }

    /// Nothing will follow but this.
    pub(crate) fn end(&self, last: Option<Bytes>, end: End) {
        let mut log = self.log.lock();
        if log.end.is_none() {
            if let Some(last) = last {
                log.push(last);
            }
            log.end = Some((end, Instant::now()));
        }
        drop(log);
        self.changed.notify_waiters();
    }

    /// Ends it for whoever reads it now, who may come back for what follows.
    pub(crate) fn send_away(&self) {
        let mut log = self.log.lock();
        log.reader += 1;
        log.is_open = false;
        drop(log);
        self.changed.notify_waiters();
    }

    /// When it ended.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.log.lock().end.map(|(_, when)| when)
    }

    /// The memory that its events take.
    pub(crate) fn bytes(&self) -> usize {
        self.log.lock().bytes
    }

    /// Waits for the end, and gives it with the last message.
    pub(crate) async fn outcome(&self) -> (End, Bytes) {
        loop {
            let changed = self.changed.notified();
            if let Some(outcome) = self.look_at_end() {
                return outcome;
            }
            changed.await;
        }
    }

    fn look_at_end(&self) -> Option<(End, Bytes)> {
        let log = self.log.lock();
        let (end, _) = log.end?;
        Some((end, log.events.back().map(|event| event.data.clone()).unwrap_or_default()))
    }

    /// Waits until there is something to tell. When that is all there will be, it is given: the whole stream, written
    /// out.
    pub(crate) async fn whole_or_begun(&self) -> Option<Bytes> {
        loop {
            let changed = self.changed.notified();
            {
                let log = self.log.lock();
                match (&log.end, log.events.front()) {
                    (Some(_), Some(event)) if log.events.len() == 1 => return Some(render_message(None, &event.data)),
                    (None, None) => {}
                    _ => return None,
                }
            }
            changed.await;
        }
    }

    /// Reads what no reader was given yet, and what follows.
    pub(crate) fn read(self: &Arc<Self>, held: impl Send + 'static) -> Body {
        let next = self.log.lock().delivered;
        self.read_from(next, held)
    }

    /// Reads what follows the event of that number, or nothing when that is no longer known.
    pub(crate) fn read_after(self: &Arc<Self>, number: u64, held: impl Send + 'static) -> Option<Body> {
        let log = self.log.lock();
        let oldest = log.events.front().map_or(log.next, |event| event.number);
        let is_known = (oldest..=log.next).contains(&number.checked_add(1)?);
        drop(log);
        is_known.then(|| self.read_from(number + 1, held))
    }

    /// The messages that no reader was given yet, and those that follow, as messages.
    pub(crate) fn messages(self: &Arc<Self>, held: impl Send + 'static) -> BoxStream<'static, Message> {
        let next = self.log.lock().delivered;
        let reader = self.reader(next);
        let messages = futures::stream::unfold((reader, held), async |(mut reader, held)| {
            Some((reader.next_message().await?, (reader, held)))
        });
        messages.filter_map(|data| std::future::ready(Message::read(data).ok())).boxed()
    }

    fn reader(self: &Arc<Self>, next: u64) -> Reader {
        let mut log = self.log.lock();
        log.reader += 1;
        log.is_open = true;
        let reader = Reader { stream: Arc::clone(self), number: log.reader, next };
        drop(log);
        // The reader before has to find out.
        self.changed.notify_waiters();
        reader
    }

    fn read_from(self: &Arc<Self>, next: u64, held: impl Send + 'static) -> Body {
        let reader = self.reader(next);
        Body::stream(futures::stream::unfold((reader, held), async |(mut reader, held)| {
            Some((Ok(reader.next().await?), (reader, held)))
        }))
    }

    fn render(&self, number: u64, data: &[u8]) -> Bytes {
        let id = self.is_resumable.then(|| format!("{}-{number}", self.name));
        render_message(id.as_deref(), data)
    }
}

/// A message as an event. The name matters: some clients ignore events without one.
fn render_message(id: Option<&str>, data: &[u8]) -> Bytes {
    Frame { id, name: (!data.is_empty()).then_some("message"), data, retry: None }.encode().into()
}

/// The stream and the number that an event id names.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests;
