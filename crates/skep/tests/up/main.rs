//! `skep up` from outside: manifests become processes that answer, heal, follow changes, and leave nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod life;
mod machine;
mod pods;
