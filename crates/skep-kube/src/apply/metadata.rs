//! What field ownership knows of the metadata that all objects have.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::field_set::FieldSet;
use crate::schema::Schema;

/// The members of an object that its own schema has no say in.
static OBJECT: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "object", "additionalProperties": text });
    let owner = json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": text, "kind": text, "name": text, "uid": text,
            "controller": { "type": "boolean" }, "blockOwnerDeletion": { "type": "boolean" },
        },
    });
    let metadata = json!({ "type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
        "generation": { "type": "integer" },
        "creationTimestamp": text, "deletionTimestamp": text,
        "deletionGracePeriodSeconds": { "type": "integer" },
        "labels": texts, "annotations": texts,
        "finalizers": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
        "ownerReferences": { "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"], "items": owner },
        "managedFields": { "type": "array", "x-kubernetes-list-type": "atomic", "items": { "type": "object" } },
    } });
    Schema::read(&json!({ "properties": { "apiVersion": text, "kind": text, "metadata": metadata } }))
});

/// What nobody owns.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// The schema of `apiVersion`, `kind` or `metadata`.
pub(super) fn member(name: &str) -> Option<&'static Schema> {
    OBJECT.properties.get(name).map(|schema| &**schema)
}

/// A set without the members that nobody owns.
pub(super) fn without_never_owned(set: &FieldSet) -> FieldSet {
    set.difference(&NEVER_OWNED)
}

/// The object without its managed fields: they do not own themselves.
pub(super) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Writes the managed fields of an object; none is no member at all.
pub(super) fn set_managed_fields(object: &mut Value, entries: Vec<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    if entries.is_empty() {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}
