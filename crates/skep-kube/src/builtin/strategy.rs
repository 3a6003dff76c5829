//! What a write may set: the parts of an object that a create, an update or a status update clears or keeps.

use serde_json::{Map, Value, json};

use super::data_source::settle_data_source;
use super::dropped::drop_unkept;
use super::{Builtin, Quantity};
use crate::schema::structural::stored_versions;

/// Kinds that count the changes of what is asked of them.
const COUNTED: [&str; 10] = [
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "PodDisruptionBudget",
    "Ingress",
    "IngressClass",
    "NetworkPolicy",
    "EndpointSlice",
    "PriorityClass",
];

impl Builtin {
    fn is_counted(&self) -> bool {
        COUNTED.contains(&self.kind) || self.kind == "CustomResourceDefinition"
    }

    /// Whether the status is written apart from the rest.
    pub fn has_status(&self) -> bool {
        self.subresources.iter().any(|part| part.name == "status")
    }
}

/// Readies a new object: clears what only the server may set. `now` is a time as Kubernetes writes it.
pub fn prepare_create(kind: &Builtin, object: &mut Value, now: &str) {
    drop_unkept(kind, object, None);
    if kind.kind == "PersistentVolumeClaim" {
        settle_data_source(object);
    }
    let Some(members) = object.as_object_mut() else { return };
    if kind.has_status() && kind.kind != "Node" {
        let first = match kind.kind {
            "Pod" => {
                json!({ "phase": "Pending", "qosClass": quality_of_service(members.get("spec").unwrap_or(&Value::Null)) })
            }
            "Namespace" => json!({ "phase": "Active" }),
            "PersistentVolumeClaim" => json!({ "phase": "Pending" }),
            "PersistentVolume" => json!({ "phase": "Pending", "lastPhaseTransitionTime": now }),
            "CustomResourceDefinition" => first_definition_status(members),
            _ => Value::Object(Map::new()),
        };
        members.insert("status".to_owned(), first);
    }
    if let (true, Some(Value::Object(metadata))) = (kind.is_counted(), members.get_mut("metadata")) {
        metadata.insert("generation".to_owned(), 1.into());
    }
    match kind.kind {
        "Namespace" => add_finalizer(members.get_mut("spec"), "kubernetes"),
        "PersistentVolumeClaim" => add_finalizer(members.get_mut("metadata"), "kubernetes.io/pvc-protection"),
        "PersistentVolume" => add_finalizer(members.get_mut("metadata"), "kubernetes.io/pv-protection"),
        _ => {}
    }
    super::canonical(kind, object);
}

fn first_definition_status(members: &Map<String, Value>) -> Value {
    let stored = stored_versions(members.get("spec").unwrap_or(&Value::Null), &Value::Null);
    json!({ "acceptedNames": { "plural": "", "kind": "" }, "conditions": null, "storedVersions": stored })
}

fn add_finalizer(place: Option<&mut Value>, name: &str) {
    let Some(members) = place.and_then(Value::as_object_mut) else { return };
    let list = members.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|found| found == name)) {
        list.push(name.into());
    }
}

/// Readies an object that replaces `old`: keeps the status, and counts a change of the spec.
pub fn prepare_update(kind: &Builtin, object: &mut Value, old: &Value) {
    drop_unkept(kind, object, Some(old));
    if kind.kind == "PersistentVolumeClaim" && !old["spec"]["dataSourceRef"].is_null() {
        settle_data_source(object);
    }
    if kind.has_status() {
        keep(object, old, "status");
    }
    if kind.kind == "CustomResourceDefinition" {
        let stored = stored_versions(&object["spec"], &old["status"]["storedVersions"]);
        let status = object.as_object_mut().map(|members| members.entry("status").or_insert_with(|| json!({})));
        if let Some(status) = status.and_then(Value::as_object_mut) {
            status.insert("storedVersions".to_owned(), stored.into());
        }
    }
    if kind.kind == "Namespace" {
        // Finalizers of the namespace itself are changed through the finalize subresource.
        keep(object, old, "spec");
    }
    if kind.is_counted() {
        let before = old["metadata"]["generation"].as_i64().unwrap_or_default();
        let generation = if asks_for_something_else(kind, object, old) { before.saturating_add(1) } else { before };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("generation".to_owned(), generation.into());
        }
    }
    super::canonical(kind, object);
}

fn asks_for_something_else(kind: &Builtin, new: &Value, old: &Value) -> bool {
    let differs = |name: &str| new[name] != old[name];
    let metadata_differs = |name: &str| new["metadata"][name] != old["metadata"][name];
    match kind.kind {
        "EndpointSlice" => {
            differs("endpoints") || differs("ports") || differs("addressType") || metadata_differs("labels")
        }
        // Counted when it is made, and never again.
        "PriorityClass" => false,
        // Controllers of deployments act on annotations too.
        "Deployment" => differs("spec") || metadata_differs("annotations"),
        _ => differs("spec"),
    }
}

/// Readies an update of the containers that are there for a while: everything else stays as it was.
pub fn prepare_ephemeral_update(kind: &Builtin, object: &mut Value, old: &Value) {
    let containers = object["spec"]["ephemeralContainers"].take();
    keep(object, old, "spec");
    if let Some(spec) = object.get_mut("spec").filter(|_| !containers.is_null()) {
        spec["ephemeralContainers"] = containers;
    } else if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("ephemeralContainers");
    }
    if let Some(metadata) = object.get_mut("metadata") {
        for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
            keep(metadata, &old["metadata"], name);
        }
    }
    prepare_update(kind, object, old);
}

/// Readies a status update: everything that is not status stays as it was.
pub fn prepare_status_update(kind: &Builtin, object: &mut Value, old: &Value) {
    drop_unkept(kind, object, Some(old));
    keep(object, old, "spec");
    if let Some(metadata) = object.get_mut("metadata") {
        match kind.kind {
            "Deployment" => keep(metadata, &old["metadata"], "labels"),
            "Pod" => keep(metadata, &old["metadata"], "ownerReferences"),
            _ => {}
        }
        keep(metadata, &old["metadata"], "generation");
    }
    if kind.kind == "CustomResourceDefinition"
        && object["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty)
        && object["status"].is_object()
    {
        object["status"]["storedVersions"] = stored_versions(&object["spec"], &Value::Null).into();
    }
    super::canonical(kind, object);
}

/// Puts a member back to what it was.
fn keep(object: &mut Value, old: &Value, name: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => _ = members.insert(name.to_owned(), value.clone()),
        None => _ = members.remove(name),
    }
}

/// How a pod is treated when memory or CPU run short.
pub fn quality_of_service(spec: &Value) -> &'static str {
    let of_pod = ["requests", "limits"].into_iter().any(|kind| spec["resources"][kind].is_object());
    let containers: Vec<&Value> = if of_pod {
        // What is said of the pod as a whole counts for all of it.
        vec![spec]
    } else {
        let lists = ["initContainers", "containers"].into_iter();
        lists.flat_map(|list| spec[list].as_array().into_iter().flatten()).collect()
    };
    let amount = |container: &Value, kind: &str, name: &str| {
        let text = container["resources"][kind][name].as_str()?;
        Quantity::parse(text).filter(|quantity| !quantity.is_zero())
    };
    let mut any = false;
    let mut guaranteed = !containers.is_empty();
    for container in containers {
        for name in ["cpu", "memory"] {
            let request = amount(container, "requests", name);
            let limit = amount(container, "limits", name);
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some()
                && (request.is_none() || request.partial_cmp(&limit) == Some(std::cmp::Ordering::Equal));
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
