use std::sync::Arc;

use super::super::{apply_defaults, prune};
use super::*;
use crate::decode::decode_object;
use crate::status::{ApiError, ResourceName};

/// Where a rule that cannot be evaluated is told in other words than on the server: functions of kube-cel have their own,
/// and of an `||` with two sides that fail the interpreter names the right one, the server the left one.
const OTHER_WORDS: [&str; 7] = [
    "URL parse",
    "IP Address",
    "substring range",
    "index out of range",
    "Major.Minor",
    "network address",
    "index out of bounds: 0 evaluating rule: self[0] != \"e\" ||",
];

/// `measured.json` holds objects of every keyword, some with the object they replace, and what the real server had
/// against each.
#[test]
fn objects_are_refused_as_on_the_real_server() {
    let measured = decode_object(include_bytes!("measured.json")).unwrap().value;
    let schemas: Vec<CompiledSchema> = measured["schemas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| CompiledSchema::new(Arc::new(Schema::read(document))))
        .collect();
    let objects = measured["objects"].as_array().unwrap();
    let mut differences = Vec::new();
    for entry in objects {
        let schema = &schemas[usize::try_from(entry["schema"].as_u64().unwrap()).unwrap()];
        let prepared = |mut object: Value| {
            object["metadata"] = serde_json::json!({ "name": "t" });
            prune(schema.schema(), &mut object);
            apply_defaults(schema.schema(), &mut object);
            object
        };
        let old = entry.get("old").cloned().map(prepared);
        let found = told(&validate(schema, &prepared(entry["new"].clone()), old.as_ref()));
        let mut expected: Vec<String> = entry["causes"].as_array().unwrap().iter().map(cause).collect();
        expected.sort();
        let other_words = expected.iter().any(|cause| OTHER_WORDS.iter().any(|words| cause.contains(words)));
        let alike = if other_words { found.len() == expected.len() } else { found == expected };
        if !alike {
            differences.push(format!("{} {}\n  ours: {found:#?}\n  theirs: {expected:#?}", entry["old"], entry["new"]));
        }
    }
    assert!(objects.len() > 180, "{}", objects.len());
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), objects.len(), differences.join("\n"));
}

fn cause(cause: &Value) -> String {
    let part = |index: usize| cause[index].as_str().unwrap();
    format!("{} {} {}", part(0), part(1), part(2))
}

fn told(errors: &[FieldError]) -> Vec<String> {
    let error = ApiError::invalid(&ResourceName::default(), "", errors);
    let mut causes: Vec<String> = error
        .causes
        .into_iter()
        .map(|cause| format!("{} {} {}", cause.field.unwrap_or_default(), cause.reason, cause.message))
        .collect();
    causes.sort();
    causes
}
