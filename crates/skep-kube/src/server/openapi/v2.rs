//! `/openapi/v2`: the same schemas in the older form. kubectl before 1.29 refuses to work without it, and every kubectl
//! looks into it for lists of objects. Nobody reads its paths, which are left out.

mod message;

use serde_json::{Map, Value, json};

use super::super::registry::Registry;
use super::add_schemas;

pub use message::encode;

const REFERENCE: &str = "$ref";

/// The document of all kinds.
pub fn document(registry: &Registry) -> Value {
    let mut schemas = Map::new();
    for resource in registry.all() {
        for version in &resource.versions {
            add_schemas(&resource, version, &mut schemas);
        }
    }
    let definitions: Map<String, Value> = schemas.into_iter().map(|(name, schema)| (name, older(&schema))).collect();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "v1.36.3" },
        "paths": {},
        "definitions": definitions,
    })
}

/// A schema in the words of the older form; what it has no words for is left open.
fn older(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let is = |name: &str| members.get(name) == Some(&Value::Bool(true));
    let mut copy = Map::new();
    for (name, value) in members {
        let value = match name.as_str() {
            REFERENCE => moved(value),
            "items" | "additionalProperties" => older(value),
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                properties.map(|(name, schema)| (name.clone(), older(schema))).collect::<Map<_, _>>().into()
            }
            // The only one of a kind stands for itself: newer schemas cannot say anything beside a reference.
            "allOf" => match value[0].get(REFERENCE) {
                Some(reference) => {
                    copy.insert(REFERENCE.to_owned(), moved(reference));
                    continue;
                }
                None => continue,
            },
            "anyOf" | "oneOf" | "not" | "nullable" => continue,
            _ => value.clone(),
        };
        copy.insert(name.clone(), value);
    }
    if is("x-kubernetes-preserve-unknown-fields") {
        copy.retain(|name, _| !["properties", "additionalProperties", "items"].contains(&name.as_str()));
    }
    if is("nullable") || is("x-kubernetes-int-or-string") {
        copy.retain(|name, _| !["type", "properties", "items"].contains(&name.as_str()));
    }
    copy.into()
}

fn moved(reference: &Value) -> Value {
    reference.as_str().unwrap_or_default().replace("#/components/schemas/", "#/definitions/").into()
}
