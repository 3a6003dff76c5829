//! Filling in defaults, and dropping nulls that stand for nothing.

use serde_json::Value;

use super::Schema;

/// Fills in the defaults of a schema, wherever the parent is there, and then drops the nulls of members that may not be
/// null and have no default. A null where there is a default counts as absence.
pub fn apply_defaults(schema: &Schema, object: &mut Value) {
    fill_defaults(schema, object);
    drop_nulls(schema, object);
}

/// Fills in the defaults of a schema, wherever the parent is there, and leaves other nulls alone.
pub fn fill_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let replace = members.get(name).is_none_or(|member| member.is_null() && !property.nullable);
                if let Some(default) = default(property).filter(|_| replace) {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    fill_defaults(property, member);
                } else if let Some(entry) = &schema.additional_properties {
                    fill_null(entry, member);
                    fill_defaults(entry, member);
                }
            }
        }
        Value::Array(items) => {
            for (item, schema) in items.iter_mut().zip(std::iter::repeat(&schema.items)) {
                if let Some(schema) = schema {
                    fill_null(schema, item);
                    fill_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// What a schema puts in the place of nothing. A default of null puts nothing there.
fn default(schema: &Schema) -> Option<&Value> {
    schema.default.as_ref().filter(|default| !default.is_null())
}

fn fill_null(schema: &Schema, value: &mut Value) {
    if let Some(default) = default(schema).filter(|_| value.is_null() && !schema.nullable) {
        value.clone_from(default);
    }
}

fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let Some(known) = schema.member(name) else {
                return true;
            };
            drop_nulls(known, member);
            !member.is_null() || known.nullable || default(known).is_some()
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each line was tried on the real server.
    #[test]
    fn defaults_and_nulls_are_those_of_the_real_server() {
        let schema =
            Schema::read(&json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "d": { "type": "string", "default": "dd" },
            "dn": { "type": "string", "nullable": true, "default": "dn" },
            "dnull": { "type": "string", "nullable": true, "default": null },
            "o": { "type": "object", "default": {}, "properties": { "a": { "type": "string", "default": "aa" } } },
            "p": { "type": "object", "properties": { "a": { "type": "string", "default": "aa" },
                "b": { "type": "string" }, "n": { "type": "string", "nullable": true } } },
            "l": { "type": "array", "items": { "type": "object", "nullable": true,
                "properties": { "a": { "type": "string", "default": "aa" } } } },
            "ld": { "type": "array", "items": { "type": "string", "default": "x" } },
            "m": { "type": "object", "additionalProperties": { "type": "object", "default": { "z": "1" },
                "properties": { "z": { "type": "string" }, "a": { "type": "string", "default": "aa" } } } },
            "mn": { "type": "object", "additionalProperties": { "type": "string" } },
            "pu": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } } } }));
        let base = json!({ "d": "dd", "dn": "dn", "o": { "a": "aa" } });
        for (given, expected) in [
            (json!({}), json!({})),
            (json!({ "d": null, "dn": null, "dnull": null }), json!({ "dn": null, "dnull": null })),
            (json!({ "o": null, "p": null }), json!({})),
            (json!({ "p": { "a": null, "b": null, "n": null } }), json!({ "p": { "a": "aa", "n": null } })),
            (json!({ "l": [{}, null, { "a": null }] }), json!({ "l": [{ "a": "aa" }, null, { "a": "aa" }] })),
            (json!({ "ld": [null, "a"] }), json!({ "ld": ["x", "a"] })),
            (
                json!({ "m": { "x": null, "y": {}, "z": { "z": null } } }),
                json!({ "m": { "x": { "a": "aa", "z": "1" }, "y": { "a": "aa" }, "z": { "a": "aa" } } }),
            ),
            (json!({ "mn": { "a": null, "b": "x" } }), json!({ "mn": { "b": "x" } })),
            (json!({ "pu": { "u": null } }), json!({ "pu": { "u": null } })),
        ] {
            let mut object = json!({ "spec": given });
            apply_defaults(&schema, &mut object);
            let mut whole = base.clone();
            for (name, value) in expected.as_object().unwrap() {
                whole[name] = value.clone();
            }
            assert_eq!(object["spec"], whole, "{given}");
        }
        let mut nothing = json!({ "spec": null });
        apply_defaults(&schema, &mut nothing);
        assert_eq!(nothing, json!({}));
    }
}
