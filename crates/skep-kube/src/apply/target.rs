//! What is written to, as far as ownership depends on it.

use serde_json::Value;

use super::field_set::FieldSet;
use crate::schema::Schema;

/// The resource or subresource that a request writes to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The schema of the whole kind. Metadata need not be described.
    pub schema: &'a Schema,
    /// The version of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Every version of the kind; what is owned in another one has lost its owner.
    pub versions: &'a [&'a str],
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// What this target can write, and hence own.
    pub ownable: &'a Ownable,
    /// What an object of the kind is before anything is written to it: an empty object for custom resources, the
    /// structs that are always there for built-in kinds ([`blank`](super::blank)).
    pub blank: &'a Value,
}

impl Target<'_> {
    pub(super) fn knows(&self, version: &str) -> bool {
        version == self.api_version || self.versions.contains(&version)
    }
}

/// The part of an object that a target can write. What it cannot write it resets, so nobody gains it by trying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ownable {
    #[default]
    Everything,
    /// All but these and what is below them.
    AllBut(FieldSet),
    /// Nothing but these and what is below them.
    Only(FieldSet),
}

impl Ownable {
    /// All but the fields with these paths: `all_but(&["status"])` for objects with a status of their own.
    pub fn all_but(paths: &[&str]) -> Self {
        Self::AllBut(FieldSet::of_fields(paths))
    }

    /// Only the fields with these paths: `only(&["status"])` for the status of custom resources.
    pub fn only(paths: &[&str]) -> Self {
        Self::Only(FieldSet::of_fields(paths))
    }

    pub(super) fn of(&self, fields: &FieldSet) -> FieldSet {
        match self {
            Self::Everything => fields.clone(),
            Self::AllBut(prefixes) => fields.outside(prefixes),
            Self::Only(prefixes) => fields.inside(prefixes),
        }
    }
}
