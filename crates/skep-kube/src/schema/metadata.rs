//! What is known of `metadata`, at the root of an object and in embedded objects: which members there are and what
//! they hold.

use serde_json::{Map, Value};

use super::{Schema, path};
use crate::decode::UnusualNumbers;
use crate::go_text;

const MEMBERS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

const OWNER_MEMBERS: [&str; 6] = ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];

const MANAGED_FIELDS_MEMBERS: [&str; 7] =
    ["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"];

/// Removes unknown members of a `metadata` and notes their paths.
pub(super) fn prune(metadata: &mut Value, path: &str, unknown: &mut Vec<String>) {
    keep(metadata, &MEMBERS, path, unknown);
    for (list, members) in [("ownerReferences", &OWNER_MEMBERS[..]), ("managedFields", &MANAGED_FIELDS_MEMBERS[..])] {
        let items = metadata.get_mut(list).and_then(Value::as_array_mut);
        for (index, item) in items.into_iter().flatten().enumerate() {
            keep(item, members, &path::item(&path::member(path, list), index), unknown);
        }
    }
}

fn keep(value: &mut Value, members: &[&str], path: &str, unknown: &mut Vec<String>) {
    if let Value::Object(found) = value {
        found.retain(|name, _| {
            let known = members.contains(&name.as_str());
            if !known {
                unknown.push(path::member(path, name));
            }
            known
        });
    }
}

/// Why an object cannot be read although it is JSON: `metadata`, `apiVersion` or `kind` of the wrong type, at the root
/// or in an embedded object. The request is bad then, before any validation.
pub fn unreadable(schema: &Schema, object: &Value) -> Option<String> {
    if let Some(problem) = object.get("metadata").and_then(misfit) {
        return Some(problem);
    }
    unreadable_inside(schema, object, "")
}

fn unreadable_inside(schema: &Schema, value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let path = path::member(path, name);
            if schema.embedded_resource {
                match name.as_str() {
                    "apiVersion" | "kind" if !member.is_string() => {
                        return Some(format!("{path}: Invalid value: {}: must be a string", go_text::json(member)));
                    }
                    "metadata" => {
                        return misfit(member)
                            .map(|problem| format!("{path}: Invalid value: {}: {problem}", go_text::json(member)));
                    }
                    _ => {}
                }
            }
            unreadable_inside(schema.member(name)?, member, &path)
        }),
        Value::Array(items) => {
            let schema = schema.items.as_ref()?;
            items.iter().enumerate().find_map(|(index, item)| unreadable_inside(schema, item, &path::item(path, index)))
        }
        _ => None,
    }
}

/// Puts the metadata of embedded objects into the form in which the server keeps all metadata: a null is an empty one,
/// and nothing in it is null or empty.
pub fn settle_embedded(schema: &Schema, value: &mut Value) {
    if schema.embedded_resource {
        if let Some(metadata @ Value::Null) = value.get_mut("metadata") {
            *metadata = Value::Object(Map::new());
        }
        crate::builtin::canonical_metadata(value);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(schema) = schema.member(name) {
                    settle_embedded(schema, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    settle_embedded(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// What is wrong with the types inside a `metadata`.
fn misfit(metadata: &Value) -> Option<String> {
    crate::builtin::misfit("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", metadata, &UnusualNumbers::default())
}
