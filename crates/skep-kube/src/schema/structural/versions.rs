//! The versions of a CustomResourceDefinition.
//!
//! The server moves what all versions have in common to the top, and its messages name it there: the schema of a
//! definition with one version stands at `spec.validation.openAPIV3Schema`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::validate::label_problem;
use super::{check_schema, selectable, shown};
use crate::status::{FieldError, Problem};

/// One of the parts of a version that the server moves to the top.
type Part = fn(&Value) -> &Value;
/// What is wrong with that part of a version, which stands at a place.
type Check = fn(&Value, &str) -> Vec<FieldError>;

/// The parts with what is wrong with them and the place at the top where they stand when all versions agree on them.
const PARTS: [(&str, &str, Part, Check); 4] = [
    ("schema.openAPIV3Schema", "validation.openAPIV3Schema", schema, check_own_schema),
    ("subresources", "subresources", |version| &version["subresources"], check_scale),
    ("additionalPrinterColumns", "additionalPrinterColumns", columns, check_columns),
    ("selectableFields", "selectableFields", |version| &version["selectableFields"], selectable::check),
];

fn versions(spec: &Value) -> Vec<&Value> {
    spec["versions"].as_array().into_iter().flatten().collect()
}

fn is_common(versions: &[&Value], part: Part) -> bool {
    versions.windows(2).all(|pair| part(pair[0]) == part(pair[1]))
}

/// Each version by itself, without what it has in common with the others.
pub(super) fn check_each(spec: &Value) -> Vec<FieldError> {
    let versions = versions(spec);
    let mut errors = Vec::new();
    let without_schema = versions.iter().enumerate().filter(|(_, version)| !schema(version).is_object());
    errors.extend(
        without_schema
            .map(|(index, _)| FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), "")),
    );
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        check_version(version, &at, &mut errors);
        for (name, _, part, check) in PARTS {
            if !is_common(&versions, part) {
                errors.extend(check(version, &format!("{at}.{name}")));
            }
        }
    }
    errors
}

/// What all versions have in common.
pub(super) fn check_common(spec: &Value) -> Vec<FieldError> {
    let versions = versions(spec);
    let Some(first) = versions.first() else {
        return Vec::new();
    };
    let common = PARTS.into_iter().filter(|(_, _, part, _)| is_common(&versions, *part));
    common.flat_map(|(_, name, _, check)| check(first, &format!("spec.{name}"))).collect()
}

fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

fn columns(version: &Value) -> &Value {
    &version["additionalPrinterColumns"]
}

fn check_own_schema(version: &Value, at: &str) -> Vec<FieldError> {
    let has_status = version["subresources"]["status"].is_object();
    if schema(version).is_object() { check_schema(schema(version), at, has_status) } else { Vec::new() }
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
}

/// Whether the versions fit together.
pub(super) fn check_together(spec: &Value) -> Vec<FieldError> {
    let (given, versions) = (&spec["versions"], versions(spec));
    let mut errors = Vec::new();
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let refuse = |words: &str| {
        let shown = shown::versions(given);
        FieldError::new("spec.versions", Problem::InvalidHidden, format!("{shown}: {words}"))
    };
    let names: BTreeSet<String> = versions.iter().map(|version| name(version)).collect();
    if names.len() != versions.len() {
        errors.push(refuse("must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    if let Some(first) = versions.first().map(|version| name(version))
        && !first.is_empty()
        && let Some(problem) = label_problem(&first)
    {
        errors.push(FieldError::invalid("spec.version", first, problem));
    }
    errors
}

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

fn check_columns(version: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, column) in columns(version).as_array().into_iter().flatten().enumerate() {
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

fn check_scale(version: &Value, at: &str) -> Vec<FieldError> {
    let scale = &version["subresources"]["scale"];
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
