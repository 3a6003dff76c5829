//! What a node may do: read what its pods need, report on itself and on them, and ask for their tokens.
//!
//! Writes are held to the node's own objects here, which the real server leaves to an admission plugin. What a body must
//! not say is in [`restriction`].

pub mod restriction;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::Value;

use crate::auth::action::{Action, ResourceAction};
use crate::auth::authorize::{Authorizer, Decision, UserRules};
use crate::auth::rbac::{Rule, bootstrap};
use crate::auth::user::{NODE_USER_PREFIX, NODES_GROUP, User};
use crate::go_text::quoted;

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(bootstrap::node_rules);

const LEASE_NAMESPACE: &str = "kube-node-lease";

/// What the authorizer must be able to find out.
pub trait NodeObjects {
    /// Whether one of the pods that are bound to the node fits: those of a namespace, or all.
    fn any_pod(&self, node: &str, namespace: Option<&str>, fits: &mut dyn FnMut(&Value) -> bool) -> bool;

    /// The name of the PersistentVolume that a claim is bound to.
    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<String>;
}

/// The authorizer for users `system:node:<name>` in the group `system:nodes`.
pub struct NodeAuthorizer<'a> {
    objects: &'a dyn NodeObjects,
}

impl std::fmt::Debug for NodeAuthorizer<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeAuthorizer").finish_non_exhaustive()
    }
}

/// The name of the node that a user is. It may be empty: then the user claims to be a node without saying which.
fn node_name(user: &User) -> Option<&str> {
    user.name.strip_prefix(NODE_USER_PREFIX).filter(|_| user.is_in(NODES_GROUP))
}

impl Authorizer for NodeAuthorizer<'_> {
    fn decide(&self, user: &User, action: &Action) -> Decision {
        match (node_name(user), action) {
            (None, _) => no(""),
            (Some(""), _) => no(&format!("unknown node for user {}", quoted(&user.name))),
            (Some(node), Action::Resource(wanted)) => self.decide_resource(node, wanted, action),
            (Some(_), Action::Path(_)) => by_rules(action),
        }
    }

    fn rules_of(&self, user: &User, _namespace: &str) -> UserRules {
        let is_node = node_name(user).is_some();
        let errors = is_node.then(|| "node authorizer does not support user rule resolution".to_owned());
        UserRules { rules: Vec::new(), incomplete: is_node, errors: errors.into_iter().collect() }
    }
}

impl<'a> NodeAuthorizer<'a> {
    pub fn new(objects: &'a dyn NodeObjects) -> Self {
        Self { objects }
    }

    fn decide_resource(&self, node: &str, wanted: &ResourceAction, action: &Action) -> Decision {
        match (wanted.group.as_str(), wanted.resource.as_str()) {
            ("", "secrets" | "configmaps") => self.read_namespaced(node, wanted),
            ("", "persistentvolumeclaims") if wanted.subresource == "status" => match wanted.verb.as_str() {
                "update" | "patch" => self.related(node, wanted),
                _ => no("can only get/update/patch this type"),
            },
            ("", "persistentvolumeclaims" | "persistentvolumes") => self.get_only(node, wanted),
            ("", "serviceaccounts") => self.service_account(node, wanted),
            ("coordination.k8s.io", "leases") => lease(node, wanted),
            ("", "nodes") => node_object(node, wanted),
            ("", "pods") => self.pod(node, wanted),
            _ => by_rules(action),
        }
    }

    fn read_namespaced(&self, node: &str, wanted: &ResourceAction) -> Decision {
        if !matches!(wanted.verb.as_str(), "get" | "list" | "watch") {
            no("can only read resources of this type")
        } else if !wanted.subresource.is_empty() {
            no("cannot read subresource")
        } else if wanted.namespace.is_empty() {
            no("can only read namespaced object of this type")
        } else {
            self.related(node, wanted)
        }
    }

    fn get_only(&self, node: &str, wanted: &ResourceAction) -> Decision {
        if wanted.verb != "get" {
            no("can only get individual resources of this type")
        } else if !wanted.subresource.is_empty() {
            no("cannot get subresource")
        } else {
            self.related(node, wanted)
        }
    }

    fn service_account(&self, node: &str, wanted: &ResourceAction) -> Decision {
        let is_get = wanted.verb == "get" && wanted.subresource.is_empty();
        if !is_get && (wanted.verb != "create" || wanted.name.is_empty()) {
            no("can only create tokens for individual service accounts")
        } else if !is_get && wanted.subresource != "token" {
            no("can only create token subresource of serviceaccount")
        } else {
            self.related(node, wanted)
        }
    }

    fn pod(&self, node: &str, wanted: &ResourceAction) -> Decision {
        match (wanted.subresource.as_str(), wanted.verb.as_str()) {
            ("", "get" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                self.related(node, wanted)
            }
            ("", "list" | "watch") => {
                let own = |(field, value): &(String, String)| field == "spec.nodeName" && value == node;
                if wanted.field_selector.iter().any(own) {
                    yes()
                } else {
                    no("can only list/watch pods with spec.nodeName field selector")
                }
            }
            _ => no(""),
        }
    }

    /// Allowed when a pod of the node needs the object, or is it.
    fn related(&self, node: &str, wanted: &ResourceAction) -> Decision {
        if wanted.name.is_empty() {
            return no("No Object name found");
        }
        let mut fits = |pod: &Value| self.needs(pod, wanted);
        // Pods need what is in their namespace, or in none.
        let namespace = Some(wanted.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        if self.objects.any_pod(node, namespace, &mut fits) {
            yes()
        } else {
            no(&format!("no relationship found between node '{node}' and this object"))
        }
    }

    fn needs(&self, pod: &Value, wanted: &ResourceAction) -> bool {
        let name = wanted.name.as_str();
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").unwrap_or_default();
        if wanted.resource == "persistentvolumes" {
            let bound_to =
                |claim: &str| self.objects.volume_of_claim(namespace, claim).is_some_and(|bound| bound == name);
            return claims(pod).iter().any(|claim| bound_to(claim));
        }
        if wanted.namespace != namespace {
            return false;
        }
        match wanted.resource.as_str() {
            "pods" => text("/metadata/name") == Some(name),
            "serviceaccounts" => text("/spec/serviceAccountName") == Some(name),
            "persistentvolumeclaims" => claims(pod).iter().any(|claim| claim == name),
            "secrets" => uses_secret(pod, name),
            "configmaps" => uses_config_map(pod, name),
            _ => false,
        }
    }
}

/// What needs no relationship.
fn by_rules(action: &Action) -> Decision {
    if RULES.iter().any(|rule| rule.allows(action)) { yes() } else { no("") }
}

fn yes() -> Decision {
    Decision::Allowed(String::new())
}

fn no(reason: &str) -> Decision {
    Decision::NoOpinion(reason.to_owned())
}

fn lease(node: &str, wanted: &ResourceAction) -> Decision {
    if !matches!(wanted.verb.as_str(), "get" | "create" | "update" | "patch" | "delete") {
        no("can only get, create, update, patch, or delete a node lease")
    } else if wanted.namespace != LEASE_NAMESPACE {
        no(&format!("can only access leases in the {} system namespace", quoted(LEASE_NAMESPACE)))
    } else if wanted.verb != "create" && wanted.name != node {
        no("can only access node lease with the same name as the requesting node")
    } else {
        yes()
    }
}

fn node_object(node: &str, wanted: &ResourceAction) -> Decision {
    let name = wanted.name.as_str();
    match (wanted.subresource.as_str(), wanted.verb.as_str()) {
        ("", "create") => yes(),
        ("", "get" | "list" | "watch" | "update" | "patch") | ("status", "update" | "patch") if name == node => yes(),
        ("", "get" | "list" | "watch") if name.is_empty() => {
            no(&format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch") => no(&format!("node '{node}' cannot read '{name}', only its own Node object")),
        ("" | "status", "update" | "patch") => {
            no(&format!("node {} is not allowed to modify node {}", quoted(node), quoted(name)))
        }
        _ => no(""),
    }
}

fn items<'a>(parent: &'a Value, field: &str) -> &'a [Value] {
    parent.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(|field| items(spec, field))
}

fn volumes(pod: &Value) -> &[Value] {
    items(pod.get("spec").unwrap_or(&Value::Null), "volumes")
}

fn is(value: &Value, pointer: &str, name: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_str) == Some(name)
}

fn uses_secret(pod: &Value, name: &str) -> bool {
    let by_volume = |volume: &Value| {
        // Every volume driver that takes credentials calls the reference by one of these names.
        let of_driver = volume.as_object().is_some_and(|sources| {
            sources
                .values()
                .any(|source| is(source, "/secretRef/name", name) || is(source, "/nodePublishSecretRef/name", name))
        });
        is(volume, "/secret/secretName", name) || of_driver || projects(volume, "/secret/name", name)
    };
    containers(pod).any(|container| takes(container, "/secretRef/name", "/valueFrom/secretKeyRef/name", name))
        || volumes(pod).iter().any(by_volume)
        || items(pod.get("spec").unwrap_or(&Value::Null), "imagePullSecrets").iter().any(|item| is(item, "/name", name))
}

fn uses_config_map(pod: &Value, name: &str) -> bool {
    containers(pod).any(|container| takes(container, "/configMapRef/name", "/valueFrom/configMapKeyRef/name", name))
        || volumes(pod)
            .iter()
            .any(|volume| is(volume, "/configMap/name", name) || projects(volume, "/configMap/name", name))
}

/// Whether a container takes its environment from the object, as a whole or one key of it.
fn takes(container: &Value, whole: &str, key: &str, name: &str) -> bool {
    items(container, "envFrom").iter().any(|source| is(source, whole, name))
        || items(container, "env").iter().any(|variable| is(variable, key, name))
}

fn projects(volume: &Value, pointer: &str, name: &str) -> bool {
    let projected = volume.get("projected").unwrap_or(&Value::Null);
    items(projected, "sources").iter().any(|source| is(source, pointer, name))
}

/// The claims of a pod: those it names, and those made for its ephemeral volumes.
fn claims(pod: &Value) -> Vec<String> {
    let pod_name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let claim = |volume: &Value| {
        if volume.get("ephemeral").is_some() {
            return Some(format!("{pod_name}-{}", volume.get("name")?.as_str()?));
        }
        Some(volume.pointer("/persistentVolumeClaim/claimName")?.as_str()?.to_owned())
    };
    volumes(pod).iter().filter_map(claim).collect()
}
