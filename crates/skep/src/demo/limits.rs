//! What one process accepts at most. All memory that a client can make the server hold is bounded by these.

use std::time::Duration;

/// Bytes of one message.
pub(crate) const MESSAGE_BYTES: usize = 4 << 20;
/// Messages in one batch.
pub(crate) const BATCH_MESSAGES: usize = 50;
/// Sessions of all clients together. A new one beyond that ends the one that was idle the longest.
pub(crate) const SESSIONS: usize = 512;
/// How long a session lives without a request or an open stream.
pub(crate) const SESSION_IDLE: Duration = Duration::from_mins(30);
/// Requests of one session, or of one process on stdio, that run at the same time.
pub(crate) const RUNNING_REQUESTS: usize = 64;
/// Resources that one session or one listener watches.
pub(crate) const WATCHED_RESOURCES: usize = 64;
/// Resumable streams that one session keeps, finished ones included.
pub(crate) const STREAMS_PER_SESSION: usize = 64;
/// Events that a stream keeps for a client that comes back, and events that may wait for a slow one.
pub(crate) const EVENTS_PER_STREAM: usize = 256;
/// Bytes of events that a stream keeps for a client that comes back. A larger one is kept until it was read once.
pub(crate) const EVENT_BYTES_PER_STREAM: usize = 1 << 20;
/// Bytes of events that the finished streams of a session keep together when another one begins.
pub(crate) const EVENT_BYTES_PER_SESSION: usize = 1 << 20;
/// Messages on their way to a client that reads slowly.
pub(crate) const QUEUED_MESSAGES: usize = 64;
/// HTTP exchanges that are open at the same time, streams included.
pub(crate) const EXCHANGES: usize = 1024;
/// How long a question to the client waits for its answer.
pub(crate) const QUESTION_PATIENCE: Duration = Duration::from_mins(5);
/// How often an idle stream shows that it is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long running requests may take to finish after the server was asked to stop.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(3);
