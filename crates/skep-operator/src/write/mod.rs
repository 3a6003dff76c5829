//! Everything that the operator writes.

mod apply;
pub(crate) mod diff;
mod fields;
mod writer;

pub use apply::{Applied, ApplyError, apply, delete, owner_reference};
pub use writer::{Writer, has_finalizer};
