//! Walking a structural schema.

use std::collections::BTreeSet;

use serde_json::Value;

use super::RuleAt;

/// Every place of a schema with the schema that stands there: `spec`, `spec.env`, `spec.env[]`, `spec.env[].name`.
pub fn places(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    collect("", schema, &mut found);
    found
}

fn collect<'a>(path: &str, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    found.push((path.to_owned(), schema));
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            collect(&path, property, found);
        }
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            collect(&format!("{path}{step}"), &schema[keyword], found);
        }
    }
}

/// The CEL rules of a schema.
pub fn rules(schema: &Value) -> BTreeSet<RuleAt> {
    let mut rules = BTreeSet::new();
    for (path, schema) in places(schema) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message = rule["message"].as_str().unwrap_or_default().to_owned();
            rules.insert(RuleAt { path: path.clone(), message, error: None });
        }
    }
    rules
}

/// Fills in defaults as the API server does: only where the parent is present.
pub fn apply_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if !members.contains_key(name)
                    && let Some(default) = property.get("default")
                {
                    members.insert(name.clone(), default.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    apply_defaults(property, member);
                }
            }
            if schema["additionalProperties"].is_object() {
                members.values_mut().for_each(|member| apply_defaults(&schema["additionalProperties"], member));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply_defaults(&schema["items"], item)),
        _ => {}
    }
}
