//! What one proxy accepts at most. All memory that a client or a server can make it hold is bounded by these.

use std::time::Duration;

use crate::budget::{Allowance, Budget};

/// The limits that somebody may want to change.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Connections at the same time. More of them wait.
    pub connections: usize,
    /// How long a connection may take to say the first thing it wants.
    pub head: Duration,
    /// How long an upload may take.
    pub upload: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long requests may take to finish after the proxy was asked to stop.
    pub drain: Duration,
    /// How long a server on standard input and output may take for an answer.
    pub request: Duration,
    /// How long a session lives without a request.
    pub session: Duration,
    /// How long a session lives, however much it is used.
    pub session_in_all: Duration,
    /// Sessions at the same time. A new one beyond that ends one of the client that has most, the one that was idle the
    /// longest.
    pub sessions: usize,
    /// The same of one client: somebody who proves who it is, or else an address. A new one ends one of its own.
    pub sessions_each: usize,
    /// Bytes of one line that a server writes on standard output.
    pub line_bytes: usize,
    /// Bytes of large messages that are held at the same time: bodies of requests, and answers that are not handed on as they
    /// come. More than one body, and one line, has to have room.
    pub held: Budget,
    /// Bytes of large answers that were read and are kept for clients that come back because something got lost on its way.
    /// What finds no room is not kept.
    pub kept: Budget,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            head_bytes: 128 << 10,
            connections: 16 << 10,
            head: Duration::from_secs(10),
            upload: Duration::from_secs(30),
            idle: Duration::from_mins(2),
            drain: Duration::from_secs(24),
            request: Duration::from_mins(1),
            session: Duration::from_hours(2),
            session_in_all: Duration::from_hours(24),
            sessions: 64 << 10,
            sessions_each: 16 << 10,
            line_bytes: 64 << 20,
            held: Budget::new(256 << 20),
            kept: Budget::new(64 << 20),
        }
    }
}

impl Limits {
    /// What may be held of an answer.
    pub(crate) fn answers(&self) -> Allowance {
        Allowance { largest: self.line_bytes, budget: self.held.clone() }
    }
}

/// How long the last words of a proxy may take when all requests have ended: what it tells servers, collectors and those who
/// record. Together with `drain` that is less than the 30 seconds that a pod has to end.
pub(crate) const FAREWELL: Duration = Duration::from_secs(4);
/// Messages on their way to or from a server on standard input and output.
pub(crate) const QUEUED_MESSAGES: usize = 100;
/// Bytes of the large ones among those on their way to it.
pub(crate) const QUEUED_BYTES: usize = 64 << 20;
/// Messages beyond those that tell such a server what it need not do any more: more than one session can leave behind.
pub(crate) const QUEUED_FAREWELLS: usize = 1024;
/// Events that a stream keeps for a client that comes back, and events that may wait for a slow one.
pub(crate) const EVENTS_PER_STREAM: usize = 256;
/// Bytes of such events. A larger one is kept until it was read once.
pub(crate) const EVENT_BYTES_PER_STREAM: usize = 1 << 20;
/// Streams of one session that can be resumed although they were read to their end. Together they keep as many bytes as one
/// may.
pub(crate) const STREAMS_PER_SESSION: usize = 64;
/// Resources that one session may watch, and bytes of the name of each.
pub(crate) const WATCHED_PER_SESSION: usize = 256;
pub(crate) const WATCHED_URI_BYTES: usize = 8 << 10;
/// Requests of one session that may be under way at the same time, and answers that nobody has come back for yet.
pub(crate) const CALLS_PER_SESSION: usize = 256;
/// Bytes that are kept of them, such as their ids. One request may go beyond that.
pub(crate) const CALL_BYTES_PER_SESSION: usize = 8 << 20;
/// Bytes of answers that may wait for the client of one session: on the one stream that it has for all of them, or on those
/// that it has left. One answer may go beyond that.
pub(crate) const UNREAD_ANSWER_BYTES: usize = 16 << 20;
/// How long a stream that has ended can be resumed.
pub(crate) const RESUMABLE: Duration = Duration::from_mins(5);
/// How often an idle stream shows that it is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an answer is waited for before the client is told that there will be a stream. Most answers are faster, and
/// then they go out in one piece.
pub(crate) const HEAD_DELAY: Duration = Duration::from_millis(50);
/// The same for requests that stand alone, whose status says what went wrong; a stream could not say that any more.
pub(crate) const STATUS_DELAY: Duration = Duration::from_secs(1);
/// What a client is asked to wait when it came too early.
pub(crate) const RETRY_AFTER_SECONDS: &str = "1";
