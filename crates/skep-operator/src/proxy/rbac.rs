//! What a proxy may do, and as whom it and its backend run.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_api::names::mcp_server;

use super::{Inputs, Target};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// API group, resource and verbs. A proxy of an MCPServer runs the backend.
const SERVER_RULES: &[(&str, &str, &[&str])] = &[
    ("apps", "statefulsets", WRITE),
    ("", "services", WRITE),
    ("", "pods", READ),
    ("", "pods/log", &["get"]),
    ("", "pods/attach", &["create", "get"]),
    ("", "configmaps", READ),
];
const REMOTE_RULES: &[(&str, &str, &[&str])] = &[("", "configmaps", READ), ("", "secrets", READ)];

/// The accounts that are made for the workload: the proxy's unless it has one of the user, the backend's unless it has
/// one of the user. Secrets that a platform puts onto them stay where none are configured.
pub fn service_accounts(inputs: &Inputs<'_>) -> Vec<ServiceAccount> {
    let backend = match inputs.target {
        Target::Server(spec) if spec.service_account.is_none() => {
            Some(mcp_server::backend_service_account(inputs.common.name))
        }
        Target::Server(_) | Target::Remote(_) => None,
    };
    let proxy = makes_account(inputs).then(|| inputs.account_name());
    let account = |name| ServiceAccount {
        metadata: named(name),
        image_pull_secrets: inputs.image_pull_secrets(),
        ..ServiceAccount::default()
    };
    proxy.into_iter().chain(backend).map(account).collect()
}

/// The account that was made for the workload before its user chose another. One that the user names stays, whoever
/// made it.
pub(super) fn unneeded_account(inputs: &Inputs<'_>) -> Option<String> {
    let (made, chosen) = match inputs.target {
        Target::Server(spec) => {
            (mcp_server::backend_service_account(inputs.common.name), spec.service_account.as_deref())
        }
        Target::Remote(_) => (inputs.account_name(), users_account(inputs)),
    };
    chosen.filter(|chosen| *chosen != made).map(|_| made)
}

/// The rights of the account that is made for the proxy.
pub fn role(inputs: &Inputs<'_>) -> Option<Role> {
    let rules = match inputs.target {
        Target::Server(_) => SERVER_RULES,
        Target::Remote(_) => REMOTE_RULES,
    };
    let rule = |(group, resource, verbs): &(&str, &str, &[&str])| PolicyRule {
        api_groups: Some(vec![(*group).to_owned()]),
        resources: Some(vec![(*resource).to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    makes_account(inputs)
        .then(|| Role { metadata: named(inputs.account_name()), rules: Some(rules.iter().map(rule).collect()) })
}

/// Gives these rights to that account.
pub fn role_binding(inputs: &Inputs<'_>) -> Option<RoleBinding> {
    let name = inputs.account_name();
    makes_account(inputs).then(|| RoleBinding {
        metadata: named(name.clone()),
        role_ref: RoleRef { api_group: Some(RBAC_GROUP.to_owned()), kind: "Role".to_owned(), name: name.clone() },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name,
            namespace: Some(inputs.common.namespace.to_owned()),
            ..Subject::default()
        }]),
    })
}

/// The account as which the proxy runs.
pub(super) fn proxy_account(inputs: &Inputs<'_>) -> String {
    users_account(inputs).map_or_else(|| inputs.account_name(), str::to_owned)
}

fn makes_account(inputs: &Inputs<'_>) -> bool {
    users_account(inputs).is_none()
}

/// The account that the user has chosen for the proxy. `spec.serviceAccount` of an MCPServer is that of its backend.
fn users_account<'a>(inputs: &Inputs<'a>) -> Option<&'a str> {
    match inputs.target {
        Target::Server(_) => None,
        Target::Remote(spec) => spec.service_account.as_deref().filter(|name| !name.is_empty()),
    }
}

fn named(name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), ..ObjectMeta::default() }
}
