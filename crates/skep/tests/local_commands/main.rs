//! The commands around `skep up`, as a person or a script meets them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod again;
mod doctor;
#[path = "../free_port/mod.rs"]
mod free_port;
mod here;
mod life;
mod objects;
mod several;
mod terminal;
mod urls;
