//! The six config kinds: one controller for all of them, and for each what makes its spec valid.

pub(crate) mod address;
pub(crate) mod authz;
mod controller;
mod expression;
mod external_auth;
mod oidc;
mod rules;
mod status;
mod telemetry;
mod tool;
mod users;
mod webhook;

pub use controller::ConfigController;

use skep_api::conditions::{Statement, reasons};
use skep_api::kinds::config_status::ConfigStatus;

use crate::cluster::OwnKind;
use crate::object_names;

/// A kind that other objects take their configuration from.
pub trait ConfigKind: OwnKind + skep_api::kind::Kind<Status = ConfigStatus> {
    const FINALIZER: &'static str;
    /// The reasons of the condition `Valid` when it holds and when it does not.
    const REASONS: (&'static str, &'static str) = (reasons::VALIDATION_SUCCEEDED, reasons::VALIDATION_FAILED);
    /// Conditions of the kind beyond `Valid` and `DeletionBlocked`.
    const ADVICE: &'static [&'static str] = &[];

    /// What is wrong with the spec beyond the names in it. Admission has asked most of it already, but the object may be
    /// older than a rule.
    fn judge(&self) -> Verdict;

    /// What is wrong with the spec.
    fn validate(&self) -> Verdict {
        self.judge()?;
        Ok(object_names::check(self.spec())?)
    }

    /// What else there is to say about the spec, valid or not: conditions of the types in [`Self::ADVICE`].
    fn advice(&self) -> Vec<Statement> {
        Vec::new()
    }
}

/// Whether a spec is valid, and if not, why.
pub type Verdict = Result<(), Complaint>;

/// Why a spec is invalid, in words for its author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Complaint {
    message: String,
    /// The reason to give, where it is not that of the kind.
    reason: Option<&'static str>,
}

impl Complaint {
    fn with_reason(message: String, reason: &'static str) -> Self {
        Self { message, reason: Some(reason) }
    }
}

impl From<String> for Complaint {
    fn from(message: String) -> Self {
        Self { message, reason: None }
    }
}

/// What is wrong, for the author of a spec that says nothing at all: it is taken for one of the first type.
fn for_empty<S: Default + PartialEq>(spec: &S, message: String) -> String {
    if *spec == S::default() { format!("{message}, which it is when the spec says no type") } else { message }
}

/// Reads a spec and asks what is wrong with it.
#[cfg(test)]
fn complaint_about<K: ConfigKind>(spec: &serde_json::Value) -> String {
    let object: K = serde_json::from_value(serde_json::json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
    object.validate().err().map(|complaint| complaint.to_string()).unwrap_or_default()
}

/// Checks what is said about each spec; nothing means that it is valid.
#[cfg(test)]
fn judge<K: ConfigKind>(expectations: impl IntoIterator<Item = (serde_json::Value, &'static str)>) {
    for (spec, expected) in expectations {
        assert_eq!(complaint_about::<K>(&spec), expected, "{spec}");
    }
}
