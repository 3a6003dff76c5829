//! The proxy as clients and servers meet it, on sockets of this machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod alone_with_redis;
mod authz;
mod bridge;
mod connections;
mod cors;
mod eras;
mod hostile;
mod http;
#[path = "../../src/fetch/inside.rs"]
mod inside;
mod middleware;
mod node;
#[path = "../../../skep/tests/once/mod.rs"]
mod once;
mod property;
#[path = "../../../skep/tests/provider/mod.rs"]
mod provider;
#[path = "../../../skep/tests/telemetry/mod.rs"]
mod readers;
mod redis;
mod shared_sessions;
mod telemetry;
mod tls;
mod transparent;
mod warnings;
mod webhook;
