//! The schema of a custom resource as its OpenAPI document shows it: what its author wrote, and what is the same in
//! all objects.

use serde_json::{Map, Value, json};

use crate::builtin;

/// What all objects have; written as in a built-in kind that has nothing special.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];
const MODEL: (&str, &str) = ("", "ConfigMap");

/// Adds what the members of all objects are made of, and returns these members.
pub(super) fn add_common(schemas: &mut Map<String, Value>) -> Map<String, Value> {
    let mut definitions = builtin::definitions(MODEL.0, MODEL.1);
    let model = builtin::find(MODEL.0, "v1", MODEL.1).map(builtin::Builtin::definition_name).unwrap_or_default();
    let model = definitions.remove(&model).unwrap_or_default();
    schemas.extend(definitions);
    let member = |name: &str| {
        let mut member = model["properties"][name].clone();
        // Nobody fills in the metadata of a custom object.
        member.as_object_mut()?.remove("default");
        Some((name.to_owned(), member))
    };
    COMMON.into_iter().filter_map(member).collect()
}

/// The schema of whole objects.
pub(super) fn published(written: &Value, common: &Map<String, Value>) -> Value {
    let mut schema = written.clone();
    complete(&mut schema, common);
    add_members(&mut schema, common);
    schema
}

fn complete(schema: &mut Value, common: &Map<String, Value>) {
    let Some(members) = schema.as_object_mut() else { return };
    for below in ["items", "additionalProperties"] {
        if let Some(below) = members.get_mut(below) {
            complete(below, common);
        }
    }
    for property in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        complete(property.1, common);
    }
    let is = |extension: &str| members.get(extension) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") && !members.contains_key("anyOf") && !members.contains_key("allOf") {
        members.insert("anyOf".to_owned(), json!([{ "type": "integer" }, { "type": "string" }]));
    } else if is("x-kubernetes-embedded-resource") {
        add_members(schema, common);
        require(schema, &["kind", "apiVersion"]);
    }
}

/// What the author says about these members is for validation alone.
fn add_members(schema: &mut Value, common: &Map<String, Value>) {
    if let Some(members) = schema.as_object_mut() {
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.extend(common.clone());
        }
    }
}

fn require(schema: &mut Value, names: &[&str]) {
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in names {
        if !required.iter().any(|known| known == name) {
            required.push((*name).into());
        }
    }
    schema["required"] = required.into();
}
