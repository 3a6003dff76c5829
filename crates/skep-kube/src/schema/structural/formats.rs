//! Formats that mean nothing to the server: they are let pass, with a warning.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Type;
use super::super::validate::format_is_known;

/// What is told about the formats of a definition that the `old` one has not had.
pub fn format_warnings(document: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unrecognized).unwrap_or_default();
    unrecognized(document).difference(&known).map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unrecognized(document: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for version in document["spec"]["versions"].as_array().into_iter().flatten() {
        search(&version["schema"]["openAPIV3Schema"], super::MAX_DEPTH, &mut found);
    }
    found
}

fn search<'a>(schema: &'a Value, depth: usize, found: &mut BTreeSet<&'a str>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    // Without a type it is taken for that of a text.
    let type_ = schema["type"].as_str().map_or(Some(Type::String), Type::read);
    found.extend(schema["format"].as_str().filter(|format| !format.is_empty() && !format_is_known(type_, format)));
    let named = ["properties", "definitions", "patternProperties"].map(|keyword| &schema[keyword]);
    let members = named.into_iter().filter_map(Value::as_object).flat_map(|members| members.values());
    let listed = ["anyOf", "allOf", "oneOf"].map(|keyword| &schema[keyword]);
    let branches = listed.into_iter().filter_map(Value::as_array).flatten();
    let single = ["items", "additionalProperties", "not"].map(|keyword| &schema[keyword]);
    for inner in members.chain(branches).chain(single).filter(|inner| inner.is_object()) {
        search(inner, depth, found);
    }
}
