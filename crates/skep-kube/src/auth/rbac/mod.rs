//! Role-based access control: rules in roles, roles bound to subjects.
//!
//! Evaluation asks a [`RoleSource`]; [`RoleIndex`] is one that is built from documents and kept up to date by events.

pub mod binding;
pub mod bootstrap;
mod bootstrap_rules;
pub mod escalation;
pub mod evaluate;
pub mod index;
pub mod rule;
#[cfg(test)]
mod tests;

pub use binding::{Binding, RoleKind, RoleReference, Subject};
pub use escalation::EscalationCheck;
pub use evaluate::{Rbac, RoleSource};
pub use index::RoleIndex;
pub use rule::Rule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
