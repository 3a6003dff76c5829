//! Streams of server-sent events.
//!
//! [`Splitter`] cuts a stream into its events without changing a byte of it, [`Event`] looks into one, and [`Frame`]
//! writes one.

mod event;
mod frame;
mod split;

pub use event::Event;
pub use frame::{Frame, comment};
pub use split::{Piece, Splitter};
