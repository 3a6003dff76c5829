//! Nobody may hand out what they do not hold: the check before roles and bindings are written.
//!
//! Two verbs lift it: `escalate` on the role that is written, `bind` on the role that a binding refers to.

use std::collections::BTreeSet;

use serde_json::Value;

use super::GROUP;
use super::binding::{RoleKind, RoleReference};
use super::evaluate::{Resolved, RoleSource, resolve};
use super::rule::Rule;
use crate::auth::action::{Action, ResourceAction};
use crate::auth::authorize::{Authorizer, joined};
use crate::auth::user::{MASTERS_GROUP, User};
use crate::go_text::{quoted, quoted_list};
use crate::status::{ApiError, ResourceName};

/// How many single grants of one write are looked at one by one.
const GRANTS_EXAMINED: usize = 10_000;

/// Judges writes of roles and bindings.
pub struct EscalationCheck<'a, S> {
    pub source: &'a S,
    /// Asked about `escalate` and `bind`.
    pub authorizer: &'a dyn Authorizer,
}

impl<S> std::fmt::Debug for EscalationCheck<'_, S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EscalationCheck").finish_non_exhaustive()
    }
}

impl<S: RoleSource> EscalationCheck<'_, S> {
    /// Whether the user may write this Role, ClusterRole, RoleBinding or ClusterRoleBinding, which is complete and
    /// valid. Other kinds are none of this check's business.
    pub fn check(&self, user: &User, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        if user.is_in(MASTERS_GROUP) || old.is_some_and(|old| differ_only_in_collection(old, new)) {
            return Ok(());
        }
        match new.get("kind").and_then(Value::as_str) {
            Some("Role") => self.check_role(user, RoleKind::Role, old, new),
            Some("ClusterRole") => self.check_role(user, RoleKind::ClusterRole, old, new),
            Some("RoleBinding") => self.check_binding(user, "rolebindings", new),
            Some("ClusterRoleBinding") => self.check_binding(user, "clusterrolebindings", new),
            _ => Ok(()),
        }
    }

    fn check_role(&self, user: &User, kind: RoleKind, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        let (namespace, name) = place_of(new);
        if self.may(user, "escalate", kind, namespace, name) {
            return Ok(());
        }
        let resource = ResourceName::new(GROUP, kind.plural());
        let aggregates = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
        if kind == RoleKind::ClusterRole && (aggregates(new) || old.is_some_and(aggregates)) && !self.holds_all(user) {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(ApiError::forbidden(&resource, name, why));
        }
        self.check_rules(user, namespace, &Rule::read_all(new))
            .map_err(|missing| ApiError::forbidden(&resource, name, &missing.message(user, &resource)))
    }

    fn check_binding(&self, user: &User, plural: &str, new: &Value) -> Result<(), ApiError> {
        let (namespace, name) = place_of(new);
        let resource = ResourceName::new(GROUP, plural);
        let Some(role) = RoleReference::read(new) else {
            return Ok(());
        };
        if self.may(user, "bind", role.kind, namespace, &role.name) {
            return Ok(());
        }
        // The missing role is reported under the resource that was written, as the real server does.
        let Some(rules) = self.source.rules(&role, namespace) else {
            return Err(ApiError::not_found(&resource, &role.name));
        };
        self.check_rules(user, namespace, rules)
            .map_err(|missing| ApiError::forbidden(&resource, name, &missing.message(user, &resource)))
    }

    fn may(&self, user: &User, verb: &str, kind: RoleKind, namespace: &str, name: &str) -> bool {
        let action = ResourceAction {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: kind.plural().to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..ResourceAction::default()
        };
        self.authorizer.decide(user, &Action::Resource(action)).is_allowed()
    }

    fn holds_all(&self, user: &User) -> bool {
        let all = || vec!["*".to_owned()];
        let resources = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
        let paths = Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() };
        self.check_rules(user, "", &[resources, paths]).is_ok()
    }

    fn check_rules(&self, user: &User, namespace: &str, wanted: &[Rule]) -> Result<(), Missing> {
        let Resolved { rules: held, missing: unresolved } = resolve(self.source, user, namespace);
        let mut missing: Vec<Rule> = Vec::new();
        let mut budget = GRANTS_EXAMINED;
        for rule in wanted {
            let count = grant_count(rule);
            // A rule with very many combinations is judged as a whole, so that nobody can keep the server busy with it.
            let parts = if count > budget { vec![rule.clone()] } else { single_grants(rule) };
            budget = budget.saturating_sub(count);
            for part in parts {
                if !held.iter().any(|rule| rule.covers(&part)) {
                    add_merged(&mut missing, part);
                }
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Missing { rules: missing, unresolved }) }
    }
}

/// What the user would give without having it.
struct Missing {
    rules: Vec<Rule>,
    unresolved: Vec<RoleReference>,
}

impl Missing {
    fn message(&self, user: &User, written: &ResourceName) -> String {
        let lines: BTreeSet<String> = self.rules.iter().map(Rule::compact).collect();
        let lines: Vec<String> = lines.into_iter().collect();
        let unresolved: Vec<String> =
            self.unresolved.iter().map(|role| format!("{written} {} not found", quoted(&role.name))).collect();
        let unresolved = if unresolved.is_empty() {
            String::new()
        } else {
            format!("; resolution errors: [{}]", joined(&unresolved))
        };
        format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
            quoted(&user.name),
            quoted_list(user.groups.iter().map(String::as_str)),
            lines.join("\n")
        )
    }
}

fn grant_count(rule: &Rule) -> usize {
    let names = rule.resource_names.len().max(1);
    let resources = rule.api_groups.len().saturating_mul(rule.resources.len()).saturating_mul(names);
    rule.verbs.len().saturating_mul(resources.saturating_add(rule.non_resource_urls.len()))
}

/// A rule taken apart into rules with one value in each list.
fn single_grants(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut grants = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let grant =
                    Rule { verbs: one(verb), api_groups: one(group), resources: one(resource), ..Rule::default() };
                if rule.resource_names.is_empty() {
                    grants.push(grant);
                    continue;
                }
                let named = |name: &String| Rule { resource_names: one(name), ..grant.clone() };
                grants.extend(rule.resource_names.iter().map(named));
            }
        }
        for url in &rule.non_resource_urls {
            grants.push(Rule { verbs: one(verb), non_resource_urls: one(url), ..Rule::default() });
        }
    }
    grants
}

/// Verbs on the same resource are told in one line; those on paths each in their own.
fn add_merged(rules: &mut Vec<Rule>, grant: Rule) {
    let same = |rule: &&mut Rule| {
        rule.api_groups == grant.api_groups
            && rule.resources == grant.resources
            && rule.resource_names == grant.resource_names
    };
    if grant.non_resource_urls.is_empty()
        && let Some(rule) = rules.iter_mut().find(same)
    {
        for verb in grant.verbs {
            if !rule.verbs.contains(&verb) {
                rule.verbs.push(verb);
            }
        }
        return;
    }
    rules.push(grant);
}

fn place_of(document: &Value) -> (&str, &str) {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (text("/metadata/namespace"), text("/metadata/name"))
}

/// The garbage collector must be able to let go of objects whose permissions it does not hold.
fn differ_only_in_collection(old: &Value, new: &Value) -> bool {
    let rest = |document: &Value| {
        let mut document = document.clone();
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        document
    };
    let collection = |document: &Value| {
        [document.pointer("/metadata/ownerReferences").cloned(), document.pointer("/metadata/finalizers").cloned()]
    };
    collection(old) != collection(new) && rest(old) == rest(new)
}
