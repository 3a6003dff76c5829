//! Removing what a schema does not know.

use serde_json::Value;

use super::{Schema, metadata, path};
use crate::go_text;

/// Removes every member of an object that its schema does not know, and says which in the words of the strict decoder:
/// `unknown field "spec.bogus"`. At the root and in embedded objects `apiVersion`, `kind` and `metadata` are known.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = Unknown::default();
    walk(Some(schema), object, true, "", &mut unknown);
    unknown.in_order().iter().map(|path| format!("unknown field {}", go_text::quoted(path))).collect()
}

/// As [`prune`], for a value that is not a whole object. The paths of what was removed.
pub(super) fn prune_value(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut unknown = Unknown::default();
    walk(Some(schema), value, false, "", &mut unknown);
    unknown.in_order()
}

/// The paths of what was removed.
#[derive(Default)]
struct Unknown {
    members: Vec<String>,
    in_embedded_metadata: Vec<String>,
}

impl Unknown {
    /// The metadata of embedded objects is read when everything else has been pruned.
    fn in_order(mut self) -> Vec<String> {
        self.members.sort();
        self.in_embedded_metadata.sort();
        self.members.append(&mut self.in_embedded_metadata);
        self.members
    }
}

fn walk(schema: Option<&Schema>, value: &mut Value, root: bool, path: &str, unknown: &mut Unknown) {
    let preserve = schema.is_some_and(|schema| schema.preserve_unknown_fields);
    match value {
        Value::Object(members) => {
            let whole = root || schema.is_some_and(|schema| schema.embedded_resource);
            members.retain(|name, member| {
                let path = path::member(path, name);
                if whole && name == "metadata" {
                    let found = if root { &mut unknown.members } else { &mut unknown.in_embedded_metadata };
                    metadata::prune(member, &path, found);
                    return true;
                }
                if whole && (name == "apiVersion" || name == "kind") {
                    return true;
                }
                if let Some(known) = schema.and_then(|schema| schema.member(name)) {
                    walk(Some(known), member, false, &path, unknown);
                    return true;
                }
                if schema.is_some_and(|schema| schema.additional_allowed.is_some()) {
                    walk(None, member, false, &path, unknown);
                    return true;
                }
                if !preserve {
                    unknown.members.push(path);
                }
                preserve
            });
        }
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            if preserve && schema.is_none() {
                return;
            }
            for (index, item) in items.iter_mut().enumerate() {
                walk(schema, item, false, &path::item(path, index), unknown);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::read(&json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "pres": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "inner": { "type": "object", "properties": { "a": { "type": "string" } } } } },
            "any": { "x-kubernetes-preserve-unknown-fields": true },
            "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } },
            "map": { "type": "object", "additionalProperties":
                { "type": "object", "properties": { "a": { "type": "string" } } } },
            "open": { "type": "object", "additionalProperties": true },
            "s": { "type": "string" },
            "embedded": { "type": "object", "x-kubernetes-embedded-resource": true,
                "properties": { "spec": { "type": "object", "properties": { "a": { "type": "string" } } } } },
        } } } }))
    }

    /// Each line was tried on the real server.
    #[test]
    fn unknown_members_are_removed_and_named() {
        let cases = [
            (
                json!({ "apiVersion": "v1", "spec": { "bogus": 1, "aaa": { "x": 1 } }, "top": 1,
                    "metadata": { "name": "t", "bogus": 1, "ownerReferences": [{ "zz": 1 }] } }),
                json!({ "apiVersion": "v1", "spec": {}, "metadata": { "name": "t", "ownerReferences": [{}] } }),
                vec!["metadata.bogus", "metadata.ownerReferences[0].zz", "spec.aaa", "spec.bogus", "top"],
            ),
            (
                json!({ "spec": { "list": [{ "a": "x" }, { "b": 1 }], "map": { "k.x/y": { "b": 1 } } } }),
                json!({ "spec": { "list": [{ "a": "x" }, {}], "map": { "k.x/y": {} } } }),
                vec!["spec.list[1].b", "spec.map.k.x/y.b"],
            ),
            (
                json!({ "spec": { "pres": { "x": { "y": 1 }, "inner": { "b": 1 } }, "any": [{ "z": 1 }] } }),
                json!({ "spec": { "pres": { "x": { "y": 1 }, "inner": {} }, "any": [{ "z": 1 }] } }),
                vec!["spec.pres.inner.b"],
            ),
            (
                json!({ "spec": { "open": { "x": { "y": 1 }, "s": "1", "l": [{ "q": 1 }] } } }),
                json!({ "spec": { "open": { "x": {}, "s": "1", "l": [{}] } } }),
                vec!["spec.open.l[0].q", "spec.open.x.y"],
            ),
            (
                json!({ "spec": { "s": { "x": 1 }, "list": { "x": 1 } } }),
                json!({ "spec": { "s": {}, "list": {} } }),
                vec!["spec.list.x", "spec.s.x"],
            ),
            (
                json!({ "spec": { "embedded": { "apiVersion": "v1", "kind": "K", "zz": 1,
                    "metadata": { "name": "n", "bogus": 1 }, "spec": { "u": 1 } } } }),
                json!({ "spec": { "embedded": { "apiVersion": "v1", "kind": "K",
                    "metadata": { "name": "n" }, "spec": {} } } }),
                vec!["spec.embedded.spec.u", "spec.embedded.zz", "spec.embedded.metadata.bogus"],
            ),
        ];
        for (mut object, kept, unknown) in cases {
            let expected: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
            assert_eq!(prune(&schema(), &mut object), expected);
            assert_eq!(object, kept);
        }
    }
}
