//! The fields of a version that can be selected by.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::status::FieldError;

const SIMPLE: &str = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                      formats are allowed.";

/// What is wrong with the selectable fields of a version, which stand at a place.
pub(super) fn check(version: &Value, at: &str) -> Vec<FieldError> {
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for (index, field) in version["selectableFields"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{at}[{index}].jsonPath");
        let path = field["jsonPath"].as_str().unwrap_or_default();
        if path.is_empty() {
            errors.push(FieldError::required(place, ""));
        } else if let Err(problem) = find(schema, path) {
            errors.push(FieldError::invalid(place, path, problem));
        } else if !seen.insert(path) {
            errors.push(FieldError::duplicate(place, path));
        }
    }
    errors
}

/// Whether a path leads to a field that can be compared with a text.
fn find(schema: &Value, path: &str) -> Result<(), String> {
    let invalid = |why: &str| Err(format!("is an invalid path: {why}"));
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split(['.', '[']).next().unwrap_or_default();
        return invalid(&format!("expected [ or . but got: {first}"));
    };
    if path.contains('[') {
        return invalid("array notation is not allowed");
    }
    if path.ends_with('.') {
        return invalid("unexpected end of JSON path");
    }
    let found = names.split('.').try_fold(schema, |schema, name| member(schema, name));
    match found.map(|found| found["type"].as_str().unwrap_or_default()) {
        None => invalid("does not refer to a valid field"),
        Some(_) if names.starts_with("metadata.") => Err("must not point to fields in metadata".to_owned()),
        Some("string" | "boolean" | "integer") => Ok(()),
        Some(_) => Err(SIMPLE.to_owned()),
    }
}

fn member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let entries = || schema.get("additionalProperties").filter(|entries| entries.is_object());
    schema["properties"].get(name).or_else(entries)
}
