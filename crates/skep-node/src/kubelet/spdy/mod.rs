//! The server's half of SPDY/3.1, as far as Kubernetes uses it: streams that clients open, with headers and data.
//!
//! No window is kept in either direction, because the clients of Kubernetes keep none and would wait for ever: a
//! stream that is not read stops the connection.

mod dictionary;
mod frame;
mod headers;
mod session;

pub(super) use session::{Stream, Voice, serve};
