//! A server that speaks HTTP itself, behind the proxy. The server is the test, so that it sees what it gets.

mod addresses;
mod batches;
pub(crate) mod dialled;
mod headers;
mod monitor;
mod recovery;
mod revisions;
pub(crate) mod server;
mod sessions;
mod stopping;
pub(crate) mod streams;
