//! Whole objects inside objects: they have a version, a kind and metadata like any other.

use serde_json::Value;

use super::super::{Schema, path};
use crate::names::{dns1035_label, validate_annotations, validate_labels};
use crate::status::FieldError;

pub(super) fn check(schema: &Schema, value: &Value, at: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            if schema.embedded_resource {
                whole(value, at, errors);
            }
            for (name, member) in members {
                if let Some(known) = schema.member(name) {
                    check(known, member, &path::member(at, name), errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(item_schema) = &schema.items {
                    check(item_schema, item, &path::item(at, index), errors);
                }
            }
        }
        _ => {}
    }
}

fn whole(object: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let field = path::member(at, "apiVersion");
    match object.get("apiVersion").and_then(Value::as_str).unwrap_or_default() {
        "" => errors.push(FieldError::required(field, "")),
        version if version.matches('/').count() > 1 => {
            errors.push(FieldError::invalid(field, version, format!("unexpected GroupVersion string: {version}")));
        }
        _ => {}
    }
    let field = path::member(at, "kind");
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "" => errors.push(FieldError::required(field, "")),
        kind => errors.extend(kind_problem(kind).map(|problem| FieldError::invalid(field, kind, problem))),
    }
    let metadata = path::member(at, "metadata");
    let entries = |list: &str| object.get("metadata")?.get(list)?.as_object();
    if let Some(labels) = entries("labels") {
        errors.extend(validate_labels(labels, &path::member(&metadata, "labels")));
    }
    if let Some(annotations) = entries("annotations") {
        errors.extend(validate_annotations(annotations, &path::member(&metadata, "annotations")));
    }
}

/// What is said about a kind that cannot be one.
pub(in super::super) fn kind_problem(kind: &str) -> Option<String> {
    let problem = label_problem(&kind.to_lowercase())?;
    Some(format!("may have mixed case, but should otherwise match: {problem}"))
}

/// What is said about a text that is no label of a domain name that starts with a letter.
pub(in super::super) fn label_problem(text: &str) -> Option<String> {
    let complaints = dns1035_label(text);
    (!complaints.is_empty()).then(|| complaints.join(","))
}
