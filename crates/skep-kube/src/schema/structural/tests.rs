use super::*;
use crate::builtin;
use crate::names::{NameRule, validate_object_name};
use crate::status::{ApiError, ResourceName};

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

/// Everything that is wrong with a new definition, of which only the name is looked at elsewhere.
fn refusal(document: &Value) -> Vec<FieldError> {
    let mut document = document.clone();
    let kind = builtin::find("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    builtin::default(kind, &mut document);
    let name = document["metadata"]["name"].as_str().unwrap_or_default();
    let mut errors = validate_object_name(name, "", NameRule::Dns1123Subdomain);
    errors.extend(check(&document, None));
    errors
}

/// `measured.json` holds definitions and what the real server had against each.
#[test]
fn definitions_are_refused_as_on_the_real_server() {
    let measured: Vec<Value> = serde_json::from_str(include_str!("measured.json")).unwrap();
    let mut differences = Vec::new();
    for entry in &measured {
        let mut expected: Vec<String> = entry["causes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cause| {
                let part = |index: usize| cause[index].as_str().unwrap();
                format!("{} {} {}", part(0), part(1), part(2))
            })
            .collect();
        expected.sort();
        let found = told(&refusal(&entry["document"]));
        if found != expected {
            let only = |one: &[String], other: &[String]| {
                one.iter().filter(|cause| !other.contains(cause)).cloned().collect::<Vec<_>>()
            };
            differences.push(format!(
                "{}\n  ours only: {:#?}\n  theirs only: {:#?}",
                entry["document"]["spec"]["versions"][0]["schema"],
                only(&found, &expected),
                only(&expected, &found)
            ));
        }
    }
    assert!(measured.len() > 150, "{}", measured.len());
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), measured.len(), differences.join("\n"));
}

#[test]
fn documents_that_are_no_definitions_are_refused_without_panic() {
    for document in [Value::Null, Value::from(1), serde_json::json!([]), serde_json::json!({ "spec": [] })] {
        assert!(!check(&document, None).is_empty());
    }
}
