//! Server-side apply, and who owns which field of an object (`metadata.managedFields`).
//!
//! Every write goes through here: [`update`] for creations, updates and patches, [`apply`] for applied
//! configurations. Both are pure functions of the live object and the request. Neither defaults, prunes, validates nor
//! resets anything; the caller does, before [`update`] and after [`apply`], and then calls [`keep_times`].

mod blank;
mod cap;
mod check;
mod compare;
mod conflict;
mod entry;
pub mod field_manager;
mod field_set;
pub mod fields_v1;
mod fit;
mod last_applied;
mod merge;
mod metadata;
mod owned;
mod ownership;
mod path;
mod remove;
mod shape;
mod target;
#[cfg(test)]
mod tests;
mod write;

pub use blank::blank;
pub use conflict::{ApplyError, Conflict};
pub use entry::{Operation, Owner};
pub use field_manager::validate_managed_fields;
pub use field_set::FieldSet;
pub use ownership::{describe_kind, unconvertible};
pub use path::{Literal, PathElement};
pub use target::{Ownable, Target};
pub use write::{BEFORE_FIRST_APPLY, apply, keep_times, update};

/// How deep objects and field sets may be nested. JSON from the network is never nested deeper than 128.
const NESTING_LIMIT: usize = 256;
