//! What holds at the root of a schema and nowhere else.

use serde_json::Value;

use super::node::{PRESERVE, check_object_parts, is_set};
use super::shown;
use crate::status::{FieldError, Problem};

/// Keywords that may stand at the root of a schema with a status subresource, under the names that messages give them.
const AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
    MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
    XPreserveUnknownFields XValidations]";
const NOT_AT_ROOT: [&str; 16] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "not",
    "nullable",
    "oneOf",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// What may not stand at the root of a schema with a status subresource.
pub(super) fn check_beside_status(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if NOT_AT_ROOT.iter().any(|keyword| is_set(&schema[keyword])) {
        let words =
            format!("only {AT_ROOT} fields are allowed at the root of the schema if the status subresource is enabled");
        errors.push(FieldError::new(at, Problem::InvalidHidden, format!("{}: {words}", shown::schema(schema))));
    }
    if let Some(type_) = schema["type"].as_str().filter(|type_| !type_.is_empty() && *type_ != "object") {
        let words =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{at}.type"), type_, words));
    }
    errors
}

/// A whole object is never null.
pub(super) fn check_nullable(schema: &Value, at: &str) -> Option<FieldError> {
    let words = "nullable cannot be true at the root";
    (schema["nullable"] == true).then(|| FieldError::forbidden(format!("{at}.nullable"), words))
}

pub(super) fn check_structure(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let type_ = schema["type"].as_str().unwrap_or_default();
    if type_.is_empty() {
        if schema[PRESERVE] != true {
            errors.push(FieldError::required(format!("{at}.type"), "must not be empty at the root"));
        }
    } else if type_ != "object" {
        errors.push(FieldError::invalid(format!("{at}.type"), type_, "must be object at the root"));
    }
    check_metadata(schema, at, errors);
}

/// The types of what every object has, and what may be said about its metadata.
fn check_metadata(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    check_object_parts(schema, at, errors);
    let metadata = &schema["properties"]["metadata"];
    let place = format!("{at}.properties[metadata]");
    let Some(members) = metadata.as_object() else {
        return;
    };
    let only_names = metadata["properties"]
        .as_object()
        .is_none_or(|properties| properties.keys().all(|name| name == "name" || name == "generateName"));
    let allowed = |keyword: &String| matches!(keyword.as_str(), "type" | "properties" | "description" | "title");
    if metadata["type"] == "object" && (!only_names || !members.keys().all(allowed)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&place, detail));
    }
    for (name, property) in metadata["properties"].as_object().into_iter().flatten() {
        if is_set(&property["default"]) {
            let field = format!("{place}.properties[{name}].default");
            errors.push(FieldError::forbidden(field, "must not be set in top-level metadata"));
        }
    }
}
