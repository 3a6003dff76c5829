//! A server on standard input and output, behind HTTP.
//!
//! There is one process and it has one session, which all clients share. So every request gets an id of ours on its way
//! in, every answer gets the client's back on its way out, and what cannot be attributed to a client is given to none.
//! Where there are [`Processes`] for it, a session has one for itself.

mod audience;
mod batches;
mod bridge;
mod caller;
mod calls;
pub(crate) mod clients;
mod connect;
mod connections;
pub(crate) mod events;
mod handshake;
mod incoming;
mod kept;
mod link;
pub(crate) mod load;
pub(crate) mod log_level;
pub(crate) mod mirrors;
mod oddities;
mod other_era;
mod outbox;
mod process_line;
mod processes;
mod requests;
mod sessions;
mod sse;
mod standing_alone;
mod streamable;
mod subscriptions;
mod unreadable;

pub use bridge::Bridge;
pub use connect::{ChildProcess, ChildProcesses, ConnectError, Connector, Streams};
pub(crate) use connections::LineSession;
pub use link::LinkError;
pub use processes::Processes;
pub(crate) use sse::{Paths, Sse};
pub(crate) use streamable::Streamable;
