//! What has become of the objects of a namespace, as far as it does not depend on what they were before.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Map, Value, json};
use skep_api::names::{annotations, labels};

use super::marks::{FINALIZER, FOREIGN};
use crate::cluster::{Fixture, child_kinds, is_ours, own_kinds};

const PLACE: &str = "NAMESPACE";
const CHECKSUM: &str = "CHECKSUM";
/// What a server decides by itself.
const DECIDED: [&str; 4] = ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort"];

/// Everything, by kind and name.
pub async fn of(fixture: &Fixture) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut owners = Owners::default();
    for resource in own_kinds() {
        let is_workload = ["MCPServer", "MCPRemoteProxy"].contains(&resource.kind.as_str());
        for object in fixture.objects(&resource).list(&ListParams::default()).await.unwrap() {
            let document = json!(object);
            owners.note(&object, &document);
            let told = if is_workload { workload(&object, &document) } else { config(&object, &document) };
            all.insert(format!("{} {}", resource.kind, object.name_any()), told);
        }
    }
    let mut children = Vec::new();
    for resource in child_kinds() {
        let listed = fixture.objects(&resource).list(&ListParams::default()).await.unwrap();
        let is_known = |child: &DynamicObject| is_ours(child) || is_unowned_backend(child);
        children.extend(listed.items.into_iter().filter(is_known).map(|child| (resource.kind.clone(), child)));
    }
    let checksums: Vec<String> = children.iter().filter_map(|(_, child)| checksum(child)).collect();
    for (kind, child) in &children {
        let told = match owners.of(child) {
            Owner::Gone => json!("an orphan"),
            // It has what it had when all was well with it.
            Owner::Failed => continue,
            Owner::There => built(kind, child, &checksums),
        };
        all.insert(format!("{kind} {}", child.name_any()), told);
    }
    all.into_iter().map(|(name, told)| (name, anywhere(&told, &fixture.namespace))).collect()
}

/// Whether it is the StatefulSet of a backend without an owner.
fn is_unowned_backend(child: &DynamicObject) -> bool {
    let is_labelled = child.labels().get(labels::TOOLHIVE_NAME) == Some(&child.name_any());
    is_labelled && skep_operator::cluster::controller(&child.metadata).is_none()
}

/// The same in every namespace.
fn anywhere(told: &Value, namespace: &str) -> Value {
    serde_json::from_str(&told.to_string().replace(namespace, PLACE)).unwrap()
}

#[derive(Default)]
struct Owners {
    there: BTreeSet<String>,
    /// MCPServers by name.
    servers: BTreeMap<String, String>,
    failed: BTreeSet<String>,
}

enum Owner {
    Gone,
    Failed,
    There,
}

impl Owners {
    fn note(&mut self, object: &DynamicObject, document: &Value) {
        let uid = object.uid().unwrap_or_default();
        if document["status"]["phase"] == "Failed" {
            self.failed.insert(uid.clone());
        }
        if document["kind"] == "MCPServer" {
            self.servers.insert(object.name_any(), uid.clone());
        }
        self.there.insert(uid);
    }

    fn of(&self, child: &DynamicObject) -> Owner {
        let owner = skep_operator::cluster::controller(&child.metadata).map(|owner| &owner.uid);
        // A backend that nobody has adopted belongs to the server of its name.
        let uid = owner.or_else(|| self.servers.get(&child.name_any()));
        match uid {
            Some(uid) if self.failed.contains(uid) => Owner::Failed,
            Some(uid) if self.there.contains(uid) => Owner::There,
            _ => Owner::Gone,
        }
    }
}

/// Conditions without their times, those of others aside.
fn conditions(document: &Value, is_told: impl Fn(&str) -> bool) -> Value {
    let mut told: Vec<Value> = Vec::new();
    for stated in document["status"]["conditions"].as_array().into_iter().flatten() {
        let type_ = stated["type"].as_str().unwrap_or_default();
        if type_ != FOREIGN && is_told(type_) {
            let is_current = stated["observedGeneration"] == document["metadata"]["generation"];
            told.push(json!([type_, stated["status"], stated["reason"], stated["message"], is_current]));
        }
    }
    told.sort_by_key(ToString::to_string);
    Value::Array(told)
}

fn finalizers(object: &DynamicObject) -> Vec<&String> {
    object.finalizers().iter().filter(|found| *found != FINALIZER).collect()
}

/// What is said about a spec no longer matters when the object is to go; and the hash is that of the last valid spec,
/// which another history does not have.
fn config(object: &DynamicObject, document: &Value) -> Value {
    let is_deleting = object.metadata.deletion_timestamp.is_some();
    let status = &document["status"];
    let verdicts = status["conditions"].as_array().into_iter().flatten();
    let is_valid = !is_deleting && verdicts.into_iter().any(|one| one["type"] == "Valid" && one["status"] == "True");
    json!({
        "deleting": is_deleting,
        "finalizers": finalizers(object),
        "conditions": conditions(document, |type_| !is_deleting || type_ == "DeletionBlocked"),
        "hash": if is_valid { &status["configHash"] } else { &Value::Null },
        "current": is_valid && status["observedGeneration"] == document["metadata"]["generation"],
        "users": status["referencingWorkloads"],
        "count": status["referenceCount"],
    })
}

/// A workload that cannot be built keeps much of what it was; what is wrong with it is the same for everybody.
fn workload(object: &DynamicObject, document: &Value) -> Value {
    if object.metadata.deletion_timestamp.is_some() {
        return json!("on its way out");
    }
    let mut status = document["status"].clone();
    let is_current = status["observedGeneration"] == document["metadata"]["generation"];
    let is_failed = status["phase"] == "Failed";
    if let Some(members) = status.as_object_mut() {
        members.retain(|name, _| !["conditions", "observedGeneration"].contains(&name.as_str()));
        if is_failed {
            members.retain(|name, _| name == "phase");
        }
    }
    json!({
        "current": is_current,
        "finalizers": finalizers(object),
        "conditions": conditions(document, |type_| !is_failed || type_ == "Ready"),
        "status": status,
    })
}

/// The checksum of a configuration, in which the name of the namespace has a part.
fn checksum(child: &DynamicObject) -> Option<String> {
    child.annotations().get(annotations::CONTENT_CHECKSUM).cloned()
}

/// A child without what the server, its controllers and others have added.
fn built(kind: &str, child: &DynamicObject, checksums: &[String]) -> Value {
    let owner = skep_operator::cluster::controller(&child.metadata);
    let owner = owner.map(|owner| json!([owner.kind, owner.name, owner.block_owner_deletion]));
    if kind == "StatefulSet" {
        // Whoever runs the backend writes the rest.
        return json!({"owner": owner});
    }
    let mut document = json!(child);
    let metadata = json!({"owner": owner, "labels": words(&document["metadata"]["labels"]),
        "annotations": words(&document["metadata"]["annotations"]), "finalizers": child.finalizers()});
    document["metadata"] = metadata;
    if let Some(members) = document.as_object_mut() {
        members.remove("status");
    }
    let template = &mut document["spec"]["template"];
    if template.is_object() {
        template["metadata"]["annotations"] = words(&template["metadata"]["annotations"]);
        if let Some(containers) = template["spec"]["containers"].as_array_mut() {
            containers.retain(|container| container["name"] != FOREIGN);
        }
    }
    undecide(&mut document);
    let text = checksums.iter().fold(document.to_string(), |text, checksum| text.replace(checksum, CHECKSUM));
    serde_json::from_str(&text).unwrap()
}

/// Labels or annotations, those of others and those that count rollouts and restarts aside.
fn words(found: &Value) -> Value {
    let ours = |name: &&String| {
        let name = name.as_str();
        name != FOREIGN && name != annotations::RESTARTED_AT && !name.starts_with("deployment.kubernetes.io/")
    };
    let members = found.as_object().into_iter().flatten();
    let kept: Map<String, Value> =
        members.filter(|(name, _)| ours(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    Value::Object(kept)
}

fn undecide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(undecide),
        Value::Object(members) => {
            members.retain(|name, _| !DECIDED.contains(&name.as_str()));
            members.values_mut().for_each(undecide);
        }
        _ => {}
    }
}

/// What differs, shortly.
pub fn difference(found: &BTreeMap<String, Value>, wanted: &BTreeMap<String, Value>) -> String {
    let names: BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        match (found.get(name), wanted.get(name)) {
            (Some(found), Some(wanted)) => {
                let changes = json_patch::diff(found, wanted).0;
                lines.extend(changes.iter().take(5).map(|change| format!("{name}: {change}")));
            }
            (Some(_), None) => lines.push(format!("{name} is there and should not be")),
            (None, _) => lines.push(format!("{name} is not there")),
        }
    }
    lines.join("\n")
}
