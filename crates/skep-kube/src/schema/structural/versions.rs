//! The versions of a CustomResourceDefinition.
//!
//! The server moves what all versions have in common to the top, and its messages name it there: the schema of a
//! definition with one version stands at `spec.validation.openAPIV3Schema`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::validate::label_problem;
use super::{check_schema, shown};
use crate::status::{FieldError, Problem};

/// One of the parts that the server moves to the top.
type Part = fn(&Value) -> &Value;
type Check = fn(&Value, &str) -> Vec<FieldError>;

pub(super) fn check(document: &Value) -> Vec<FieldError> {
    let given = &document["spec"]["versions"];
    let versions: Vec<&Value> = given.as_array().into_iter().flatten().collect();
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        check_version(version, &format!("spec.versions[{index}]"), &mut errors);
    }
    check_storage(given, &versions, &mut errors);
    let common = |part: Part| versions.windows(2).all(|pair| part(pair[0]) == part(pair[1]));
    let parts: [(&str, Part, Check); 2] = [
        ("additionalPrinterColumns", |version| &version["additionalPrinterColumns"], check_columns),
        ("subresources", |version| &version["subresources"], check_scale),
    ];
    for (name, part, check) in parts {
        if common(part) {
            errors
                .extend(versions.first().into_iter().flat_map(|version| check(part(version), &format!("spec.{name}"))));
        } else {
            for (index, version) in versions.iter().enumerate() {
                errors.extend(check(part(version), &format!("spec.versions[{index}].{name}")));
            }
        }
    }
    let has_status = |version: &Value| version["subresources"]["status"].is_object();
    if common(schema) {
        let at = "spec.validation.openAPIV3Schema";
        let first = versions.first().filter(|version| schema(version).is_object());
        errors.extend(first.into_iter().flat_map(|version| check_schema(schema(version), at, has_status(version))));
    } else {
        for (index, version) in versions.iter().enumerate().filter(|(_, version)| schema(version).is_object()) {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.extend(check_schema(schema(version), &at, has_status(version)));
        }
    }
    errors
}

fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

fn check_version(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = version["name"].as_str().unwrap_or_default();
    if let Some(problem) = label_problem(name) {
        errors.push(FieldError::invalid(format!("{at}.name"), name, problem));
    }
    if let Some(warning) = version["deprecationWarning"].as_str()
        && version["deprecated"] != true
    {
        let detail = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(format!("{at}.deprecationWarning"), warning, detail));
    }
    if !schema(version).is_object() {
        errors.push(FieldError::required(format!("{at}.schema.openAPIV3Schema"), ""));
    }
}

fn check_storage(given: &Value, versions: &[&Value], errors: &mut Vec<FieldError>) {
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let refuse = |words: &str| {
        let shown = shown::versions(given);
        FieldError::new("spec.versions", Problem::InvalidHidden, format!("{shown}: {words}"))
    };
    let names: BTreeSet<String> = versions.iter().map(|version| name(version)).collect();
    if names.len() != versions.len() {
        errors.push(refuse("must contain unique version names"));
    }
    let storage: Vec<String> =
        versions.iter().filter(|version| version["storage"] == true).map(|version| name(version)).collect();
    if storage.len() != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    match storage.as_slice() {
        [] => {
            let detail = "must have at least one stored version";
            errors.push(FieldError::invalid("status.storedVersions", Value::Null, detail));
        }
        [first, .., last] if first != last => {
            let detail = format!("must have the storage version {last}");
            errors.push(FieldError::invalid("status.storedVersions", vec![first.clone()], detail));
        }
        _ => {}
    }
    if let Some(first) = versions.first().map(|version| name(version))
        && !first.is_empty()
        && let Some(problem) = label_problem(&first)
    {
        errors.push(FieldError::invalid("spec.version", first, problem));
    }
}

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

fn check_columns(columns: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| format!("{at}[{index}].{name}");
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text("type") {
            "" => errors.push(FieldError::required(field("type"), types)),
            known if COLUMN_TYPES.contains(&known) => {}
            other => errors.push(FieldError::invalid(field("type"), other, types)),
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(field("format"), format, formats));
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(field("JSONPath"), "")),
            path if !path.starts_with('.') => {
                errors.push(FieldError::invalid(field("JSONPath"), path, SIMPLE_PATH));
            }
            _ => {}
        }
    }
    errors
}

const SIMPLE_PATH: &str = "must be a simple json path starting with .";

fn check_scale(subresources: &Value, at: &str) -> Vec<FieldError> {
    let scale = &subresources["scale"];
    if !scale.is_object() {
        return Vec::new();
    }
    let paths: [(&str, bool, &[&str], &str); 3] = [
        ("specReplicasPath", true, &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", true, &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", false, &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ];
    let check = |(name, required, roots, words): (&str, bool, &[&str], &str)| {
        let field = format!("{at}.scale.{name}");
        match scale[name].as_str().unwrap_or_default() {
            "" => required.then(|| FieldError::required(field, "")),
            path if !path.starts_with('.') => Some(FieldError::invalid(field, path, SIMPLE_PATH)),
            path if !roots.iter().any(|root| path.starts_with(root)) => Some(FieldError::invalid(field, path, words)),
            _ => None,
        }
    };
    paths.into_iter().filter_map(check).collect()
}
