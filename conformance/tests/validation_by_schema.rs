//! The validation table against our schemas, without a server: JSON Schema for the keywords, kube-cel for the rules.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use serde_json::Value;
use skep_api::crd;
use skep_conformance::validation::{self, RuleAt, Table, mutations, schema};

/// What a JSON Schema validator knows. The rest (formats of Kubernetes, keys of lists) is tried on the real server.
const KNOWN_KEYWORDS: [&str; 11] = [
    "type",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
];

fn kinds() -> Vec<(Table, Value)> {
    let tables = validation::load().unwrap();
    let named: Vec<&str> = tables.iter().map(|table| table.kind.as_str()).collect();
    let all: Vec<&str> = crd::ALL.iter().map(|entry| entry.definition.kind).collect();
    assert_eq!(named, all, "every kind has a table");
    let schemas = crd::ALL
        .iter()
        .map(|entry| entry.document().pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone());
    tables.into_iter().zip(schemas).collect()
}

/// The rules that refuse an object, by kube-cel.
fn refusals(root: &Value, object: &Value) -> BTreeSet<String> {
    match kube_cel::Validator::new().validate_with_defaults(root, object, None) {
        Ok(()) => BTreeSet::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

/// Kubernetes reads patterns as RE2, which knows POSIX classes; JSON Schema does not.
fn validator(root: &Value) -> jsonschema::Validator {
    let root: Value = serde_json::from_str(&root.to_string().replace("[:space:]", r"\\s")).unwrap();
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft4)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(&root)
        .unwrap()
}

#[test]
fn bases_are_valid() {
    for (table, root) in kinds() {
        let validator = validator(&root);
        for base in &table.bases {
            let mut object = base.object();
            schema::apply_defaults(&root, &mut object);
            let problems: Vec<String> =
                validator.iter_errors(&object).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(problems.is_empty(), "{} {}: {problems:?}", table.kind, base.name);
            assert_eq!(refusals(&root, &object), BTreeSet::new(), "{} {}", table.kind, base.name);
        }
    }
}

#[test]
fn every_place_of_every_schema_is_in_some_base() {
    for (table, root) in kinds() {
        let mut reached = BTreeSet::new();
        for base in &table.bases {
            reach(&root, &base.object(), "", &mut reached);
        }
        let missing: Vec<String> = schema::places(&root)
            .into_iter()
            .map(|(place, _)| place)
            .filter(|place| place.starts_with("spec") || place.starts_with("status"))
            .filter(|place| !reached.contains(place))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:?}", table.kind);
    }
}

fn reach(schema: &Value, value: &Value, place: &str, reached: &mut BTreeSet<String>) {
    reached.insert(place.to_owned());
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(property) = schema["properties"].get(name) {
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            reach(property, member, &place, reached);
        } else if schema["additionalProperties"].is_object() {
            reach(&schema["additionalProperties"], member, &format!("{place}{{}}"), reached);
        }
    }
    for item in value.as_array().into_iter().flatten() {
        reach(&schema["items"], item, &format!("{place}[]"), reached);
    }
}

#[test]
fn every_rule_has_an_accepted_and_a_refused_object() {
    for (table, root) in kinds() {
        let without_error = |rule: &RuleAt| RuleAt { error: None, ..rule.clone() };
        let rules = schema::rules(&root);
        let refused: BTreeSet<RuleAt> = table.cases.iter().flat_map(|case| &case.rejects).map(without_error).collect();
        let accepted: BTreeSet<RuleAt> = table.cases.iter().flat_map(|case| &case.accepts).map(without_error).collect();
        assert_eq!(refused, rules, "{}: rules with a refused object", table.kind);
        assert_eq!(accepted, rules, "{}: rules with an accepted object", table.kind);
    }
}

/// Where kube-cel 0.8 differs from the server: its `duration` does not read microseconds written with a mu, and takes
/// any number of hours. The real server decides these cases.
const DURATIONS_KUBE_CEL_MISREADS: [&str; 3] = [
    "a circuit breaker timeout in microseconds is refused",
    "a circuit breaker timeout of a million microseconds is accepted",
    "a circuit breaker timeout too long for a duration is refused",
];

#[test]
fn rules_accept_and_refuse_as_the_table_says() {
    let mut problems = Vec::new();
    for (table, root) in kinds() {
        for case in table.cases.iter().filter(|case| !DURATIONS_KUBE_CEL_MISREADS.contains(&case.name.as_str())) {
            let mut object = table.object(case);
            schema::apply_defaults(&root, &mut object);
            let found = refusals(&root, &object);
            let expected: BTreeSet<String> = case.rejects.iter().map(|rule| rule.message.clone()).collect();
            // A rule that cannot be evaluated refuses the object, with a text of the evaluator's own.
            let cannot_be_evaluated = case.rejects.iter().any(|rule| rule.error.is_some());
            let as_expected = if cannot_be_evaluated { !found.is_empty() } else { found == expected };
            if !as_expected {
                problems.push(format!("{} {}: found {found:?}, expected {expected:?}", table.kind, case.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_constraint_accepts_and_refuses() {
    for (table, root) in kinds() {
        let validator = validator(&root);
        let mut tried = BTreeSet::new();
        for base in &table.bases {
            for mutation in mutations::of(&root, &base.object()) {
                if !KNOWN_KEYWORDS.contains(&mutation.keyword) {
                    continue;
                }
                let mut object = mutation.object.clone();
                schema::apply_defaults(&root, &mut object);
                let (place, keyword) = (&mutation.place, mutation.keyword);
                assert_eq!(validator.is_valid(&object), mutation.valid, "{} {place} {keyword}", table.kind);
                if !mutation.valid {
                    tried.insert((mutation.place, keyword.to_owned()));
                }
            }
        }
        let untried: Vec<(String, String)> = constraints(&root).difference(&tried).cloned().collect();
        assert!(untried.is_empty(), "{}: {untried:?}", table.kind);
    }
}

/// Every keyword at every place that a value can break.
fn constraints(root: &Value) -> BTreeSet<(String, String)> {
    let mut constraints = BTreeSet::new();
    for (place, node) in schema::places(root) {
        if !(place.starts_with("spec") || place.starts_with("status")) {
            continue;
        }
        for keyword in KNOWN_KEYWORDS.iter().filter(|keyword| **keyword != "required" && node.get(*keyword).is_some()) {
            constraints.insert((place.clone(), (*keyword).to_owned()));
        }
        for name in node["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if node["properties"][name].get("default").is_none() {
                constraints.insert((format!("{place}.{name}"), "required".to_owned()));
            }
        }
    }
    constraints
}
