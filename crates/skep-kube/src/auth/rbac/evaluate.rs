//! Whether some role that is bound to a user allows an action.

use std::ops::ControlFlow;

use super::binding::{Binding, RoleReference, Subject};
use super::rule::Rule;
use crate::auth::action::Action;
use crate::auth::authorize::{Authorizer, Decision, UserRules, joined};
use crate::auth::user::User;

/// Where roles and bindings come from.
pub trait RoleSource {
    /// The rules of a role; `namespace` is where to look for one that is not a ClusterRole.
    fn rules(&self, role: &RoleReference, namespace: &str) -> Option<&[Rule]>;

    /// The ClusterRoleBindings that may concern the user, in a stable order. Others do no harm.
    fn cluster_bindings(&self, user: &User) -> Vec<&Binding>;

    /// The RoleBindings of a namespace that may concern the user, in a stable order.
    fn namespace_bindings(&self, namespace: &str, user: &User) -> Vec<&Binding>;
}

/// The authorizer over a source of roles.
#[derive(Debug, Clone, Copy)]
pub struct Rbac<'a, S>(pub &'a S);

impl<S: RoleSource> Authorizer for Rbac<'_, S> {
    fn decide(&self, user: &User, action: &Action) -> Decision {
        let namespace = match action {
            Action::Resource(action) => action.namespace.as_str(),
            Action::Path(_) => "",
        };
        let mut missing = Vec::new();
        let allowed = visit(self.0, user, namespace, |binding, subject, rules| match rules {
            Some(rules) if rules.iter().any(|rule| rule.allows(action)) => ControlFlow::Break(binding.reason(subject)),
            Some(_) => ControlFlow::Continue(()),
            None => {
                missing.push(binding.role.not_found());
                ControlFlow::Continue(())
            }
        });
        match allowed {
            Some(reason) => Decision::Allowed(reason),
            None if missing.is_empty() => Decision::NoOpinion(String::new()),
            None => Decision::NoOpinion(format!("RBAC: {}", joined(&missing))),
        }
    }

    fn rules_of(&self, user: &User, namespace: &str) -> UserRules {
        let Resolved { rules, missing } = resolve(self.0, user, namespace);
        let errors: Vec<String> = missing.iter().map(RoleReference::not_found).collect();
        let errors = if errors.is_empty() { errors } else { vec![joined(&errors)] };
        UserRules { rules, incomplete: false, errors }
    }
}

/// All rules of a user in a namespace, and the bound roles that do not exist.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) rules: Vec<Rule>,
    pub(super) missing: Vec<RoleReference>,
}

pub(super) fn resolve(source: &impl RoleSource, user: &User, namespace: &str) -> Resolved {
    let mut resolved = Resolved::default();
    visit::<()>(source, user, namespace, |binding, _, rules| {
        match rules {
            Some(rules) => resolved.rules.extend_from_slice(rules),
            None => resolved.missing.push(binding.role.clone()),
        }
        ControlFlow::Continue(())
    });
    resolved
}

/// Calls `seen` with every binding that concerns the user, cluster-wide ones first, until it breaks.
fn visit<T>(
    source: &impl RoleSource,
    user: &User,
    namespace: &str,
    mut seen: impl FnMut(&Binding, &Subject, Option<&[Rule]>) -> ControlFlow<T>,
) -> Option<T> {
    let mut bindings = source.cluster_bindings(user);
    if !namespace.is_empty() {
        bindings.extend(source.namespace_bindings(namespace, user));
    }
    for binding in bindings {
        let Some(subject) = binding.subject_for(user) else {
            continue;
        };
        let rules = source.rules(&binding.role, &binding.namespace);
        if let ControlFlow::Break(found) = seen(binding, subject, rules) {
            return Some(found);
        }
    }
    None
}
