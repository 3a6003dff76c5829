//! The API server as a process of its own, over TLS: killed under load, watched by many, busy for long, and kept
//! from starting.
//!
//! `SKEP_SOAK=1` runs the long forms; `cargo xtask soak` sets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "faults/folder.rs"]
mod folder;
#[path = "faults/growth.rs"]
mod growth;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/load.rs"]
mod load;
#[path = "faults/refused.rs"]
mod refused;
#[path = "faults/watchers.rs"]
mod watchers;
