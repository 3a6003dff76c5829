//! What has become of the objects of a namespace, as far as it does not depend on what they were before.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Map, Value, json};
use skep_api::names::{annotations, labels};

use super::kinds::{child_kinds, controller, own_kinds};
use super::marks::{FINALIZER, FOREIGN};
use super::place::Place;

const PLACE: &str = "NAMESPACE";
const CHECKSUM: &str = "CHECKSUM";
/// What a server decides by itself.
const DECIDED: [&str; 4] = ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort"];

/// What there is to say, by kind and name.
pub(super) type Told = BTreeMap<String, Value>;

/// What there is to say about everything.
pub(super) async fn of(place: &Place) -> kube::Result<Told> {
    let mut all = BTreeMap::new();
    let mut owners = Owners::default();
    for resource in own_kinds() {
        let is_workload = ["MCPServer", "MCPRemoteProxy"].contains(&resource.kind.as_str());
        for object in place.objects(&resource).list(&ListParams::default()).await? {
            let document = json!(object);
            owners.note(&object, &document);
            let told = if is_workload { workload(&object, &document) } else { config(&object, &document) };
            all.insert(format!("{} {}", resource.kind, object.name_any()), told);
        }
    }
    let mut children = Vec::new();
    for resource in child_kinds() {
        let listed = place.objects(&resource).list(&ListParams::default()).await?.items.into_iter();
        let listed = listed.filter(|child| !owners.need_no_more(child));
        children.extend(listed.map(|child| (resource.kind.clone(), child)));
    }
    let checksums: Vec<String> = children.iter().filter_map(|(_, child)| checksum(child)).collect();
    for (kind, child) in &children {
        let told = match owners.of(child) {
            Owner::Gone => json!("an orphan"),
            Owner::Nobody => json!("nobody's"),
            // It has what it had when all was well with it; when all is well again, it is looked at.
            Owner::Failed => continue,
            Owner::There => built(kind, child, &checksums),
        };
        all.insert(format!("{kind} {}", child.name_any()), told);
    }
    Ok(all.into_iter().map(|(name, told)| (name, anywhere(&told, &place.namespace))).collect())
}

/// The same in every namespace.
fn anywhere(told: &Value, namespace: &str) -> Value {
    replaced(told, |text| text.replace(namespace, PLACE))
}

/// The same with other texts. What is put there has to be one that JSON can hold as it is.
fn replaced(told: &Value, replace: impl Fn(String) -> String) -> Value {
    serde_json::from_str(&replace(told.to_string())).unwrap_or_default()
}

#[derive(Default)]
struct Owners {
    there: BTreeSet<String>,
    /// MCPServers that have failed, by name.
    failed_servers: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Those whose policies are inline.
    inline: BTreeSet<String>,
}

enum Owner {
    Gone,
    Nobody,
    Failed,
    There,
}

impl Owners {
    fn note(&mut self, object: &DynamicObject, document: &Value) {
        let uid = object.uid().unwrap_or_default();
        if document["status"]["phase"] == "Failed" {
            self.failed.insert(uid.clone());
            if document["kind"] == "MCPServer" {
                self.failed_servers.insert(object.name_any());
            }
        }
        if document["spec"]["authzConfig"]["type"] == "inline" {
            self.inline.insert(uid.clone());
        }
        self.there.insert(uid);
    }

    /// Whether a child is left for pods that may still run: policies that its owner has elsewhere now.
    fn need_no_more(&self, child: &DynamicObject) -> bool {
        let owner = controller(child).map(|owner| &owner.uid);
        child.labels().get(labels::AUTHZ).is_some_and(|value| value == labels::AUTHZ_INLINE)
            && owner.is_some_and(|uid| self.there.contains(uid) && !self.inline.contains(uid))
    }

    fn of(&self, child: &DynamicObject) -> Owner {
        match controller(child).map(|owner| &owner.uid) {
            // Its backend is adopted when all is well with it.
            None if self.failed_servers.contains(&child.name_any()) => Owner::Failed,
            None => Owner::Nobody,
            Some(uid) if self.failed.contains(uid) => Owner::Failed,
            Some(uid) if self.there.contains(uid) => Owner::There,
            Some(_) => Owner::Gone,
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
    let owner = controller(child).map(|owner| json!([owner.kind, owner.name, owner.block_owner_deletion]));
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
    let mask = |text| checksums.iter().fold(text, |text: String, checksum| text.replace(checksum, CHECKSUM));
    replaced(&document, mask)
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
pub(super) fn difference(found: &Told, wanted: &Told) -> String {
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
