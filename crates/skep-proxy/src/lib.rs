//! The data plane: one address in front of an MCP server, whatever it and its clients speak.
//!
//! ```text
//! listener -> guard -> middleware -> intake -> transport (bridge to stdio | transparent) -> MCP server
//! ```
//!
//! A request body is read once and kept as it came; answers are passed on as they come. Nothing here knows Kubernetes.

mod answer;
mod body;
mod budget;
mod cors;
mod early;
mod eras;
pub mod fetch;
mod forwarded;
mod gather;
mod guard;
mod health;
mod intake;
mod lapses;
mod limits;
mod listener;
pub mod middleware;
mod open_ended;
mod passing;
mod pauses;
mod proxy;
mod random;
mod readiness;
mod reply;
mod sessions;
pub mod stdio;
mod tally;
mod tls;
pub mod transparent;
mod turns;
mod upload;

pub use body::{Body, BodyError};
pub use budget::Budget;
pub use early::answer_until;
pub use eras::seal::{SealKey, ShortKey};
pub use eras::settings::{BackendEra, BackendSessions, EraSettings, ParkedCalls};
pub use forwarded::Forwarded;
pub use guard::is_origin;
pub use limits::Limits;
pub use listener::Calls;
pub use proxy::{Proxy, ServeError};
pub use readiness::{Readiness, State};
pub use sessions::{Redis, RedisError, RedisSettings, SessionStore};
pub use tls::{TlsError, TlsIdentity};
