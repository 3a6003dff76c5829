//! Why an applied configuration was refused.

use std::collections::BTreeMap;

use super::entry::Owner;
use super::path::{PathElement, shown};
use crate::status::{ApiError, Cause, Reason};

/// Why an apply request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the configuration wants to change.
    #[error("{}", message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration brings its own managed fields.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsSet,
    /// The configuration does not fit the schema.
    #[error("failed to create typed patch object ({object}): {problem}")]
    Applied { object: String, problem: String },
    /// The live object does not fit the schema.
    #[error("failed to create typed live object ({object}): {problem}")]
    Live { object: String, problem: String },
    /// The result is not an object of its kind.
    #[error(
        "failed to convert new object ({object}) to proper version: unable to convert unstructured object to {kind}: \
         {problem}"
    )]
    Merged { object: String, kind: String, problem: String },
    /// The managed fields of the live object cannot be read.
    #[error("failed to decode managed fields: {0}")]
    LiveManagedFields(String),
}

impl ApplyError {
    /// The same, with the owners of fields in the words of another version of the object.
    #[must_use]
    pub fn seen_as(mut self, api_version: &str) -> Self {
        if let Self::Conflicts(conflicts) = &mut self {
            for owner in conflicts.iter_mut().map(|conflict| &mut conflict.owner) {
                owner.api_version = owner.api_version.take().map(|_| api_version.to_owned());
            }
        }
        self
    }
}

/// A field that somebody else owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    pub owner: Owner,
    pub path: Vec<PathElement>,
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.owner, shown(&only.path));
    }
    let mut by_owner: BTreeMap<&Owner, Vec<String>> = BTreeMap::new();
    for conflict in conflicts {
        by_owner.entry(&conflict.owner).or_default().push(format!("\n- {}", shown(&conflict.path)));
    }
    let owners: Vec<String> =
        by_owner.iter().map(|(owner, paths)| format!("conflicts with {owner}:{}", paths.concat())).collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), owners.join("\n"))
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::ManagedFieldsSet => Self::bad_request(message),
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.iter().map(|conflict| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", conflict.owner),
                    field: Some(shown(&conflict.path)),
                });
                Self { causes: causes.collect(), ..Self::new(Reason::Conflict, message) }
            }
            _ => Self::new(Reason::Unknown, message),
        }
    }
}
