//! The demo server, as clients of every revision meet it on every transport.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cells;
mod conformance;
mod foreign;
mod http;
mod http_rules;
mod matrix;
mod npm;
#[path = "../once/mod.rs"]
mod once;
mod others;
mod parked;
mod peer;
mod peers;
mod process;
mod proxied;
mod revisions;
mod rmcp;
mod sdk_client;
mod stdio_rules;
#[path = "../suite/mod.rs"]
mod suite;
mod versions;
