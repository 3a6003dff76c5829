//! What a node may not say, even about itself: the rules of the real server's NodeRestriction plugin.
//!
//! A node that somebody has broken into must not be able to draw the work of others to itself, or to speak for pods
//! that are not its own.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{LEASE_NAMESPACE, items, node_name};
use crate::auth::user::User;
use crate::go_text::quoted;

/// Labels below these names are for others than the node, but for those that describe it.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];
const OWN: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const NEVER: &str = "node-restriction.kubernetes.io";
const DESCRIPTIONS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// An object as somebody wants it to be stored.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    pub subresource: &'a str,
    /// None: it is new.
    pub old: Option<&'a Value>,
    pub new: &'a Value,
}

/// Why the user may not write this, if it is a node and may not.
pub fn refusal(user: &User, write: &Write<'_>) -> Option<String> {
    let node = node_name(user)?;
    if node.is_empty() {
        return Some(format!("could not determine node from user {}", quoted(&user.name)));
    }
    match (write.group, write.resource, write.subresource) {
        ("", "nodes", _) => node_refusal(node, write),
        ("", "pods", "") => Some(format!("node {} cannot create or change pods", quoted(node))),
        ("", "pods", _) => (!same(write, "/metadata/labels"))
            .then(|| format!("node {} cannot update labels through pod status", quoted(node))),
        ("", "persistentvolumeclaims", _) => claim_refusal(node, write),
        ("coordination.k8s.io", "leases", _) => lease_refusal(node, write.new),
        _ => None,
    }
}

/// Why the user may not have a token, if it is a node: only those of its pods, and for whom the pod wants one. `pod` is
/// the one that the request names, `may_ask_for` says whether the node may ask for an audience in any case.
pub fn token_refusal(
    user: &User,
    request: &Value,
    pod: Option<&Value>,
    may_ask_for: impl FnOnce(&str) -> bool,
) -> Option<String> {
    let node = node_name(user)?;
    let reference = &request["spec"]["boundObjectRef"];
    let Some(pod) = pod.filter(|_| reference["apiVersion"] == "v1" && reference["kind"] == "Pod") else {
        return Some("node requested token not bound to a pod".to_owned());
    };
    let uid = reference["uid"].as_str().unwrap_or_default();
    if uid.is_empty() {
        return Some("node requested token with a pod binding without a uid".to_owned());
    }
    if pod["metadata"]["uid"] != uid {
        return Some(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        ));
    }
    if pod["spec"]["nodeName"] != node {
        return Some("node requested token bound to a pod scheduled on a different node".to_owned());
    }
    let audience = match items(&request["spec"], "audiences") {
        [] => "",
        [only] => only.as_str().unwrap_or_default(),
        _ => return Some("node may only request 0 or 1 audiences".to_owned()),
    };
    let is_wanted = wanted_audiences(pod).any(|wanted| wanted == audience);
    (!is_wanted && !may_ask_for(audience)).then(|| {
        format!(
            "audience {} not found in pod spec volume, {} is not authorized to request tokens for this audience",
            quoted(audience),
            user.name
        )
    })
}

fn wanted_audiences(pod: &Value) -> impl Iterator<Item = &str> {
    let sources = items(&pod["spec"], "volumes").iter().flat_map(|volume| items(&volume["projected"], "sources"));
    let tokens = sources.filter_map(|source| source.get("serviceAccountToken"));
    tokens.map(|token| token["audience"].as_str().unwrap_or_default())
}

fn node_refusal(node: &str, write: &Write<'_>) -> Option<String> {
    let name = write.new["metadata"]["name"].as_str().unwrap_or_default();
    if name != node {
        return Some(format!("node {} is not allowed to modify node {}", quoted(node), quoted(name)));
    }
    if write.old.is_some() {
        for (part, pointer) in [("taints", "/spec/taints"), ("ownerReferences", "/metadata/ownerReferences")] {
            if !same(write, pointer) {
                return Some(format!("node {} is not allowed to modify {part}", quoted(node)));
            }
        }
    }
    let labels: Vec<&str> = changed_labels(write).into_iter().filter(|label| is_forbidden(label)).collect();
    let list = labels.join(", ");
    match write.old {
        _ if labels.is_empty() => None,
        None => Some(format!("node {} is not allowed to set the following labels: {list}", quoted(node))),
        Some(_) => Some(format!("is not allowed to modify labels: {list}")),
    }
}

fn lease_refusal(node: &str, lease: &Value) -> Option<String> {
    if lease["metadata"]["namespace"] != LEASE_NAMESPACE {
        return Some(format!("can only access leases in the {} system namespace", quoted(LEASE_NAMESPACE)));
    }
    (lease["metadata"]["name"] != node)
        .then(|| "can only access node lease with the same name as the requesting node".to_owned())
}

/// A node reports how large a claim is and how it fares, and nothing else.
fn claim_refusal(node: &str, write: &Write<'_>) -> Option<String> {
    if write.subresource != "status" {
        return Some("may only update PVC status".to_owned());
    }
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        for (parent, members) in [
            ("/metadata", &["managedFields", "resourceVersion"] as &[&str]),
            ("/status", &["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"]),
        ] {
            if let Some(parent) = claim.pointer_mut(parent).and_then(Value::as_object_mut) {
                parent.retain(|member, _| !members.contains(&member.as_str()));
            }
        }
        claim
    };
    (write.old.map(rest) != Some(rest(write.new))).then(|| {
        format!(
            "node {} is not allowed to update fields other than status.quantity and status.conditions",
            quoted(node)
        )
    })
}

/// Whether a part is as it was. A part that is empty may as well be absent.
fn same(write: &Write<'_>, pointer: &str) -> bool {
    let is_something = |part: &&Value| match part {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let part = |object: &'_ Value| object.pointer(pointer).filter(is_something).cloned();
    write.old.and_then(part) == part(write.new)
}

fn changed_labels<'a>(write: &Write<'a>) -> BTreeSet<&'a str> {
    let labels = |object: &'a Value| object["metadata"]["labels"].as_object();
    let (old, new) = (write.old.and_then(labels), labels(write.new));
    let names = old.into_iter().chain(new).flat_map(serde_json::Map::keys);
    let value = |labels: Option<&'a serde_json::Map<String, Value>>, name: &str| labels.and_then(|all| all.get(name));
    names.map(String::as_str).filter(|name| value(old, name) != value(new, name)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let Some((owner, _)) = label.split_once('/') else {
        return false;
    };
    let is_below = |name: &str| owner.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let describes = DESCRIPTIONS.contains(&label) || OWN.into_iter().any(is_below);
    is_below(NEVER) || (RESERVED.into_iter().any(is_below) && !describes)
}
