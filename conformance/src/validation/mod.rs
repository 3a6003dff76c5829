//! Valid and invalid objects of every kind.
//!
//! `conformance/validation/*.yaml` holds objects that are valid (the bases) and cases for the CEL rules. Violations of
//! everything else a schema says (types, enums, bounds, patterns, required members, keys of lists) are derived from
//! the bases by [`mutations`]: for each keyword at each place one object that breaks it and, where it can be told, one
//! that just does not.

pub mod mutations;
pub mod schema;
mod table;

pub use table::{Base, Case, RuleAt, Table, load};
