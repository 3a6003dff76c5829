//! Asking several authorizers in turn: the first that allows decides; none of them forbids.

use super::action::{Action, forbidden};
use super::rbac::Rule;
use super::user::{MASTERS_GROUP, User};
use crate::status::ApiError;

/// What an authorizer says. Nobody here vetoes: what nobody allows is forbidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, with the reason that reviews show.
    Allowed(String),
    /// Not allowed by this one, and perhaps why.
    NoOpinion(String),
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Allowed(reason) | Self::NoOpinion(reason) => reason,
        }
    }
}

/// The rules that apply to a user, as far as they can be listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserRules {
    pub rules: Vec<Rule>,
    /// Somebody decides without rules that could be listed.
    pub incomplete: bool,
    pub errors: Vec<String>,
}

pub trait Authorizer {
    fn decide(&self, user: &User, action: &Action) -> Decision;

    /// The rules of a user in a namespace (cluster-wide ones only when it is empty).
    fn rules_of(&self, user: &User, namespace: &str) -> UserRules;

    /// Allowed, or the error to answer with.
    fn check(&self, user: &User, action: &Action) -> Result<(), ApiError> {
        match self.decide(user, action) {
            Decision::Allowed(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(forbidden(user, action, &reason)),
        }
    }
}

/// Authorizers in the order in which they are asked. Members of `system:masters` get past all of them.
pub struct Authorizers<'a>(pub Vec<&'a dyn Authorizer>);

impl std::fmt::Debug for Authorizers<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Authorizers({})", self.0.len())
    }
}

impl Authorizer for Authorizers<'_> {
    fn decide(&self, user: &User, action: &Action) -> Decision {
        if user.is_in(MASTERS_GROUP) {
            return Decision::Allowed(String::new());
        }
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.decide(user, action) {
                allowed @ Decision::Allowed(_) => return allowed,
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }

    fn rules_of(&self, user: &User, namespace: &str) -> UserRules {
        let mut all = UserRules::default();
        for authorizer in &self.0 {
            let UserRules { rules, incomplete, errors } = authorizer.rules_of(user, namespace);
            all.rules.extend(rules);
            all.incomplete |= incomplete;
            all.errors.extend(errors);
        }
        all
    }
}

/// Several errors as one text: the only one bare, more in brackets.
pub(super) fn joined(errors: &[String]) -> String {
    match errors {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
