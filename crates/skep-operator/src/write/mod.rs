//! Everything that the operator writes.

mod apply;
mod delete;
pub(crate) mod diff;
mod fields;
mod possess;
pub(crate) mod take_over;
mod writer;

pub use apply::{Applied, ApplyError, apply, is_controlled_by, owner_reference};
pub use delete::{delete, delete_for_good};
pub use writer::{Writer, has_finalizer};
