//! `skep up` from outside: manifests become processes that answer, heal, follow changes, and leave nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod crowd;
mod footprint;
#[path = "../demo/http.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod http;
mod kills;
mod kubectl;
mod life;
mod machine;
mod mcp;
#[path = "../once/mod.rs"]
mod once;
mod packages;
mod plain;
mod pods;
mod race;
mod registries;
mod servers;
mod start;
