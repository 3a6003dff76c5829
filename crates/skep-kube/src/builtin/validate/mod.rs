//! The rules that objects of built-in kinds must keep, with the words in which the real server complains.

mod access;
mod affinity;
mod container;
mod ephemeral;
mod event;
mod exposure;
mod network;
mod others;
mod pod;
mod probe;
mod profile;
mod resources;
mod service;
mod spreading;
mod status;
mod storage;
mod update;
mod volume;
mod workload;

use serde_json::Value;

pub use self::ephemeral::validate_ephemeral_update;
pub use self::update::{validate_status_update, validate_update};
use super::Builtin;
use super::metadata::{Finalizers, validate_metadata};
use super::place::{At, ordered_text, struct_text};
use crate::names::NameRule;
use crate::status::FieldError;

const IMMUTABLE: &str = "field is immutable";

/// What names of a kind must look like.
pub fn name_rule(kind: &Builtin) -> NameRule {
    match kind.kind {
        "Namespace" | "Service" => NameRule::Dns1123Label,
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => NameRule::PathSegment,
        "Event" if kind.group.is_empty() => NameRule::PathSegment,
        _ => NameRule::Dns1123Subdomain,
    }
}

/// Which finalizers a kind takes.
fn finalizers(kind: &Builtin) -> Finalizers {
    match kind.kind {
        "Lease" | "CustomResourceDefinition" | "PodDisruptionBudget" => Finalizers::Any,
        "Event" if kind.group.is_empty() => Finalizers::Any,
        _ => Finalizers::Known,
    }
}

/// Checks a new object, which must have its defaults already.
pub fn validate_create(kind: &Builtin, object: &Value) -> Vec<FieldError> {
    if kind.kind == "Event" {
        return event::create(kind, object);
    }
    let mut errors = validate_metadata(object, name_rule(kind), finalizers(kind));
    errors.extend(rules(kind, object));
    if kind.kind == "Pod" {
        errors.extend(ephemeral::at_creation(&At::root(object)));
    }
    errors
}

/// What is in order, but not for ever, or not for much.
pub fn warnings(kind: &Builtin, object: &Value) -> Vec<String> {
    match kind.kind {
        "Service" if object["spec"]["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty()) => {
            vec!["spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned()]
        }
        "Pod" => pod::warnings(&At::root(object).member("spec")),
        "Deployment" | "ReplicaSet" | "StatefulSet" => pod::warnings(&At::root(object).deep("spec.template.spec")),
        _ => Vec::new(),
    }
}

/// What holds for new and changed objects alike.
fn rules(kind: &Builtin, object: &Value) -> Vec<FieldError> {
    let root = At::root(object);
    match kind.kind {
        "ConfigMap" => others::config_map(&root),
        "Secret" => others::secret(&root),
        "Namespace" => others::namespace(&root),
        "Service" => service::service(&root),
        "Pod" => pod::pod(&root),
        "Deployment" => workload::deployment(&root),
        "ReplicaSet" => workload::replica_set(&root),
        "StatefulSet" => workload::stateful_set(&root),
        "ControllerRevision" => workload::controller_revision(&root),
        "Lease" => others::lease(&root),
        "Role" => access::role(&root),
        "ClusterRole" => access::cluster_role(&root),
        "RoleBinding" => access::role_binding(&root),
        "ClusterRoleBinding" => access::cluster_role_binding(&root),
        "EndpointSlice" => network::endpoint_slice(&root),
        "Endpoints" => network::endpoints(&root),
        "PersistentVolumeClaim" => storage::claim(&root.member("spec")),
        "PersistentVolume" => storage::volume(&root),
        "StorageClass" => storage::class(&root),
        "PriorityClass" => others::priority_class(&root),
        "Node" => others::node(&root),
        "NetworkPolicy" => network::network_policy(&root),
        "PodDisruptionBudget" => workload::disruption_budget(&root),
        "HorizontalPodAutoscaler" => workload::autoscaler(&root),
        "Ingress" => network::ingress(&root),
        "IngressClass" => network::ingress_class(&root.deep("spec.controller")),
        _ => Vec::new(),
    }
}

/// A label selector as it is written in messages.
fn selector_text(selector: &Value) -> String {
    let mut members = Vec::new();
    if selector["matchLabels"].is_object() {
        members.push(("matchLabels", selector["matchLabels"].to_string()));
    }
    if let Some(expressions) = selector["matchExpressions"].as_array() {
        let expressions: Vec<String> =
            expressions.iter().map(|requirement| ordered_text(requirement, &["key", "operator", "values"])).collect();
        members.push(("matchExpressions", format!("[{}]", expressions.join(","))));
    }
    struct_text(&members)
}
