//! The wire of the Model Context Protocol, without losing a byte.
//!
//! Messages are read once, in place: a [`Message`] knows where its parts are and keeps the text as it came. Whoever
//! changes a member changes that member and nothing else ([`json`]). The streams that carry messages are cut up and put
//! together again by [`sse`] and [`lines`]. [`revision`] and [`era`] say which rules a message is under, [`catalog`]
//! takes lists of tools, resources and prompts apart, and [`translate`] puts the words of one era into those of the other.
//!
//! No I/O and no policy: what is allowed is decided elsewhere. Every buffer here has a limit that the caller sets.

pub mod catalog;
pub mod era;
pub mod fault;
pub mod header;
mod id;
pub mod json;
pub mod lines;
mod message;
mod meta;
pub mod method;
mod mirror;
mod payload;
pub mod revision;
pub mod sse;
pub mod translate;

pub use fault::Fault;
pub use id::Id;
pub use message::{Kind, Message, Param};
pub use meta::MetaKey;
pub use mirror::Mirror;
pub use payload::{Payload, ReadError};
pub use revision::Revision;
