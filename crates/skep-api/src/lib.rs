//! The language Skep speaks: the fourteen kinds of `toolhive.stacklok.dev`, their conditions, the names of
//! everything derived from them, and the two configuration documents the operator hands to the data plane.
//!
//! Types only. Nothing here opens a file, a socket or a clock; whoever does passes the result in.

pub mod conditions;
pub mod config;
mod constants;
pub mod crd;
pub mod duration;
pub mod hash;
pub mod kind;
pub mod kinds;
pub mod names;
pub mod raw;
mod schema;
pub mod sensitive;

pub use kind::Kind;
