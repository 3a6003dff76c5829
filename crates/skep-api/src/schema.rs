//! From what schemars derives to what Kubernetes calls a structural schema.
//!
//! The derive is left to describe the Rust types; this pass removes what Kubernetes has no use for (titles,
//! nullability of optional members) and turns documented enums into `enum` lists.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// A member with a default that is required all the same carries this mark until [`structural`] has read it:
/// `#[schemars(extend("x-skep-required" = true))]`.
const REQUIRED_MARK: &str = "x-skep-required";

/// The structural schema of a type.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema.sort_all_objects();
    structural(&mut schema);
    schema
}

fn structural(schema: &mut Value) {
    let Value::Object(node) = schema else {
        return;
    };
    unwrap_optional(node);
    list_documented_enum(node);
    for keyword in ["$schema", "title", "nullable", "components"] {
        node.remove(keyword);
    }
    // A null keyword is one that a field switched off, e.g. `extend("format" = null)` for Go's plain `int`.
    node.retain(|_, value| !value.is_null());
    // Flattened catch-all members say this; the type that has one says what it keeps with an extension.
    if node.get("additionalProperties").is_some_and(Value::is_boolean) {
        node.remove("additionalProperties");
    }
    tidy_description(node);
    tell_default(node);
    descend(node);
}

fn descend(node: &mut Map<String, Value>) {
    let mut also_required = Vec::new();
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for (name, property) in properties {
            structural(property);
            if property.as_object_mut().is_some_and(|property| property.remove(REQUIRED_MARK).is_some()) {
                also_required.push(Value::from(name.as_str()));
            }
        }
    }
    if !also_required.is_empty()
        && let Value::Array(required) = node.entry("required").or_insert_with(|| Value::Array(Vec::new()))
    {
        required.append(&mut also_required);
    }
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(keyword) {
            structural(inner);
        }
    }
}

/// `Option<T>` and a lone `allOf` become `T`; what is said beside them wins over what `T` says.
fn unwrap_optional(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            node.insert("type".into(), only);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(alternatives)) = node.get_mut(keyword) else {
            continue;
        };
        alternatives.retain(|alternative| !only_null(alternative));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            node.remove(keyword);
            for (name, value) in only {
                node.entry(name).or_insert(value);
            }
            return unwrap_optional(node);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

fn only_null(schema: &Value) -> bool {
    schema["type"] == "null"
        || schema["const"].is_null() && schema.get("const").is_some()
        || schema["enum"] == Value::Array(vec![Value::Null])
}

/// An enum with documented variants is derived as `oneOf` constants. Kubernetes wants an `enum`, and a person
/// who runs `kubectl explain` wants to know what each value means, so that goes into the description.
fn list_documented_enum(node: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = node.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut meanings = Vec::new();
    for variant in variants {
        let meaning = variant["description"].as_str();
        let listed = match (&variant["const"], &variant["enum"]) {
            (Value::String(value), _) => vec![value.clone()],
            (_, Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => return,
        };
        if let (Some(meaning), [value]) = (meaning, listed.as_slice()) {
            meanings.push(format!("- {value}: {}", one_line(meaning)));
        }
        values.extend(listed.into_iter().map(Value::from));
    }
    node.remove("oneOf");
    node.insert("type".into(), "string".into());
    node.insert("enum".into(), Value::Array(values));
    if !meanings.is_empty() {
        let before = node.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{before}\n\n{}", meanings.join("\n"));
        node.insert("description".into(), description.trim().into());
    }
}

/// Doc comments are wrapped for the reader of the source; the paragraphs of a description are not.
fn tidy_description(node: &mut Map<String, Value>) {
    let Some(Value::String(description)) = node.get_mut("description") else {
        return;
    };
    *description = paragraphs(description);
}

/// `kubectl explain` does not show defaults, so the description does.
fn tell_default(node: &mut Map<String, Value>) {
    let Some(default) = node.get("default").filter(|default| **default != Value::String(String::new())) else {
        return;
    };
    let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
    let Some(Value::String(description)) = node.get_mut("description") else {
        return;
    };
    let end = description.find("\n\n").unwrap_or(description.len());
    description.insert_str(end, &format!(" Defaults to {default}."));
}

pub(crate) fn paragraphs(text: &str) -> String {
    let tidy: Vec<String> = text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| if paragraph.starts_with("- ") { paragraph.to_owned() } else { one_line(paragraph) })
        .collect();
    tidy.join("\n\n")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    /// A flower.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    struct Flower {
        /// How it
        /// smells.
        ///
        /// Second paragraph.
        smell: Option<Smell>,
        /// How many.
        #[serde(default)]
        #[schemars(extend("x-skep-required" = true), extend("format" = null))]
        petals: i64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        stem: Option<Stem>,
    }

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    struct Stem {
        length: Option<i32>,
    }

    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Smell {
        /// Pleasant.
        #[default]
        Sweet,
        /// Less so.
        Foul,
    }

    #[test]
    fn a_derived_schema_becomes_structural() {
        assert_eq!(
            of::<Flower>(),
            json!({
                "description": "A flower.",
                "type": "object",
                "required": ["petals"],
                "properties": {
                    "smell": {
                        "description": "How it smells.\n\nSecond paragraph.\n\n- sweet: Pleasant.\n- foul: Less so.",
                        "type": "string",
                        "enum": ["sweet", "foul"],
                    },
                    "petals": { "description": "How many. Defaults to 0.", "type": "integer", "default": 0 },
                    "names": { "type": "array", "items": { "type": "string" } },
                    "stem": { "type": "object", "properties": { "length": { "type": "integer", "format": "int32" } } },
                },
            })
        );
    }
}
