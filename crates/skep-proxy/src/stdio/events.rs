//! Messages on their way to one client, which may lose the stream and come back for the rest.
//!
//! A stream belongs to a request or a session, not to a connection. It numbers its events, keeps the last ones, and has
//! at most one reader: a new one takes over from the one before.

mod held;
mod log;
mod reader;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use skep_mcp::sse::Frame;
use skep_mcp::{Id, Kind, Message};
use tokio::sync::Notify;

pub(super) use self::held::Held;
use self::held::lost;
use self::log::Log;
use self::reader::Reader;
use super::kept::Kept;
use crate::body::Body;
use crate::{budget, limits};

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
    /// Who keeps it for a client that comes back.
    keeper: Weak<Kept>,
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
    /// The proxy stops.
    Stopped,
    /// Nobody wants it any more.
    Closed,
}

impl EventStream {
    pub(crate) fn new(name: u64, is_resumable: bool) -> Arc<Self> {
        Self::of(name, is_resumable, Weak::new())
    }

    /// One that a client can come back for, once it is kept there.
    pub(super) fn kept_by(keeper: &Arc<Kept>, name: u64) -> Arc<Self> {
        Self::of(name, true, Arc::downgrade(keeper))
    }

    fn of(name: u64, is_resumable: bool, keeper: Weak<Kept>) -> Arc<Self> {
        let (owed, log) = (AtomicUsize::new(0), Mutex::new(Log::new(is_resumable)));
        Arc::new(Self { name, is_resumable, owed, log, changed: Notify::new(), keeper })
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
        self.push(lost(&answer, id));
    }

    /// Whether the client keeps up, or has not left too much.
    pub(crate) fn has_room(&self) -> bool {
        let log = self.log.lock();
        let (has_room, is_left) = (log.has_room(), log.is_left());
        drop(log);
        has_room && (!is_left || self.keeper.upgrade().is_none_or(|keeper| keeper.has_room()))
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
        // One that nobody has begun to read is answered in one piece, and nobody keeps it.
        let is_begun = log.reader > 0;
        drop(log);
        self.changed.notify_waiters();
        if is_begun {
            self.tidy_up();
        }
    }

    /// Ends it for whoever reads it now, who may come back for what follows.
    pub(crate) fn send_away(&self) {
        let mut log = self.log.lock();
        log.reader += 1;
        log.is_open = false;
        drop(log);
        self.changed.notify_waiters();
    }

    /// Nobody wants it any more.
    pub(super) fn close(&self) {
        self.end(None, End::Closed);
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
        let last = log.events.back().map(|event| event.data.clone()).unwrap_or_default();
        // What is closed may end with something that was said before the answer.
        let is_answer = |last: &Bytes| Message::read(last.clone()).is_ok_and(|last| last.kind() == Kind::Response);
        Some((end, if end == End::Closed && !is_answer(&last) { Bytes::new() } else { last }))
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

    fn render(&self, number: u64, data: &Bytes) -> Bytes {
        let id = self.is_resumable.then(|| format!("{}-{number}", self.name));
        render_message(id.as_deref(), data)
    }
}

/// A message as an event. The name matters: some clients ignore events without one.
fn render_message(id: Option<&str>, data: &Bytes) -> Bytes {
    let frame = Frame { id, name: (!data.is_empty()).then_some("message"), data, retry: None };
    budget::made_of(data, frame.encode().into())
}

/// The stream and the number that an event id names.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests;
