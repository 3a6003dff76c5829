//! A server that speaks HTTP itself, behind the proxy. The server is the test, so that it sees what it gets.

mod batches;
mod headers;
mod monitor;
mod recovery;
pub(crate) mod server;
mod sessions;
mod streams;
