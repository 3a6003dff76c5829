//! The roles and bindings that a new server begins with.

use serde_json::{Value, json};

use super::bootstrap_rules::{
    ADMIN, AUTH_DELEGATOR, BASIC_USER, CLUSTER_ADMIN, DISCOVERY, EDIT, Grant, ISSUER_DISCOVERY, MONITORING, NODE,
    PUBLIC_INFO_VIEWER, VIEW,
};
use super::rule::Rule;
use super::{GROUP, RoleKind};
use crate::auth::user::{AUTHENTICATED_GROUP, MASTERS_GROUP, SERVICE_ACCOUNTS_GROUP, UNAUTHENTICATED_GROUP};

/// The default ClusterRoles, as documents to create.
pub fn cluster_roles() -> Vec<Value> {
    let mut roles = vec![
        role("cluster-admin", None, &[CLUSTER_ADMIN]),
        aggregated("admin", None, &[EDIT, VIEW, ADMIN]),
        aggregated("edit", Some("admin"), &[EDIT, VIEW]),
        aggregated("view", Some("edit"), &[VIEW]),
        role("system:aggregate-to-admin", Some("admin"), &[ADMIN]),
        role("system:aggregate-to-edit", Some("edit"), &[EDIT]),
        role("system:aggregate-to-view", Some("view"), &[VIEW]),
    ];
    for (name, rules) in [
        ("system:auth-delegator", AUTH_DELEGATOR),
        ("system:basic-user", BASIC_USER),
        ("system:discovery", DISCOVERY),
        ("system:monitoring", MONITORING),
        ("system:node", NODE),
        ("system:public-info-viewer", PUBLIC_INFO_VIEWER),
        ("system:service-account-issuer-discovery", ISSUER_DISCOVERY),
    ] {
        roles.push(role(name, None, &[rules]));
    }
    roles
}

/// The default ClusterRoleBindings, as documents to create.
pub fn cluster_role_bindings() -> Vec<Value> {
    [
        ("cluster-admin", &[MASTERS_GROUP] as &[&str]),
        ("system:basic-user", &[AUTHENTICATED_GROUP]),
        ("system:discovery", &[AUTHENTICATED_GROUP]),
        ("system:monitoring", &["system:monitoring"]),
        ("system:node", &[]),
        ("system:public-info-viewer", &[AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP]),
        ("system:service-account-issuer-discovery", &[SERVICE_ACCOUNTS_GROUP]),
    ]
    .into_iter()
    .map(|(role, groups)| binding(role, groups))
    .collect()
}

/// What a node may do without any relationship to the object.
pub(in crate::auth) fn node_rules() -> Vec<Rule> {
    NODE.iter().map(rule).collect()
}

fn role(name: &str, aggregated_to: Option<&str>, rules: &[&[Grant]]) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    if let Some(target) = aggregated_to {
        labels[aggregation_label(target)] = "true".into();
    }
    let rules: Vec<Value> = rules.iter().flat_map(|rules| rules.iter()).map(|grant| rule(grant).document()).collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": RoleKind::ClusterRole.name(),
        "metadata": { "name": name, "labels": labels, "annotations": annotations() },
        "rules": rules,
    })
}

/// A role whose rules the real server collects from others. Here they are written out.
fn aggregated(name: &str, aggregated_to: Option<&str>, rules: &[&[Grant]]) -> Value {
    let mut role = role(name, aggregated_to, rules);
    let mut labels = json!({});
    labels[aggregation_label(name)] = "true".into();
    role["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": labels }] });
    role
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subject = |group: &&str| json!({ "apiGroup": GROUP, "kind": "Group", "name": group });
    let mut binding = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": role,
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
            "annotations": annotations(),
        },
        "roleRef": { "apiGroup": GROUP, "kind": RoleKind::ClusterRole.name(), "name": role },
    });
    if !groups.is_empty() {
        binding["subjects"] = groups.iter().map(subject).collect();
    }
    binding
}

fn annotations() -> Value {
    json!({ "rbac.authorization.kubernetes.io/autoupdate": "true" })
}

fn aggregation_label(target: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{target}")
}

fn rule(grant: &Grant) -> Rule {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Rule {
        verbs: texts(grant.verbs),
        api_groups: texts(grant.groups),
        resources: texts(grant.resources),
        resource_names: Vec::new(),
        non_resource_urls: texts(grant.paths),
    }
}
