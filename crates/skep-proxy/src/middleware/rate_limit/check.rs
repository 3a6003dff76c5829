//! What was found out about one call, for those who count such things.

use std::sync::Arc;
use std::time::Duration;

use super::RateLimits;

/// The scope of what everybody has together.
pub(super) const SHARED: &str = "shared";
/// The scope of what each user has.
pub(super) const PER_USER: &str = "per_user";

/// Whose bucket it is, and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) scope: &'static str,
    pub(crate) operation: &'static str,
}

impl Scope {
    pub(super) fn new(scope: &'static str, operation: &'static str) -> Self {
        Self { scope, operation }
    }

    /// Whether everybody takes from it.
    pub(super) fn is_shared(self) -> bool {
        self.scope == SHARED
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Each of these buckets has given a token.
    Allowed(Vec<Scope>),
    /// This bucket was empty.
    Rejected(Scope),
    /// Nobody could be asked, for this reason, and it passed.
    Unknown(&'static str),
}

/// A call that was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) limits: Arc<RateLimits>,
    pub(crate) took: Duration,
    pub(crate) verdict: Verdict,
}
