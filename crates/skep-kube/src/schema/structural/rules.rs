//! Whether CEL rules can be compiled, and say what a rule must say.

use serde_json::Value;

use super::super::Schema;
use super::super::rules::{compile_problem, cost, most, steps, uses_old_self};
use super::costs::Costs;
use super::{MAX_DEPTH, shown};
use crate::status::{FieldError, Problem};

const KEYWORD: &str = "x-kubernetes-validations";

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn check(schema: &Value, at: &str) -> Vec<FieldError> {
    let (mut errors, mut costs) = (Vec::new(), Costs::default());
    let place = Place { at, root: true, lost: None, times: Some(1) };
    walk(schema, &place, 0, &mut costs, &mut errors);
    errors.extend(costs.check(at));
    errors
}

/// Where a schema stands.
struct Place<'a> {
    at: &'a str,
    root: bool,
    /// The place from which on values cannot be followed from the old object to the new one.
    lost: Option<&'a str>,
    /// How many values there can be in one object; nothing when only its size limits them.
    times: Option<u64>,
}

fn walk(schema: &Value, place: &Place<'_>, depth: usize, costs: &mut Costs, errors: &mut Vec<FieldError>) {
    let Place { at, root, lost, times } = *place;
    let rules: Vec<&Value> = schema[KEYWORD].as_array().into_iter().flatten().collect();
    if !rules.is_empty() {
        let typed = schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true;
        if typed {
            let read = Schema::read(schema);
            for (index, rule) in rules.into_iter().enumerate() {
                let (known, at) = (errors.len(), format!("{at}.{KEYWORD}[{index}]"));
                check_rule(rule, &read, root, lost, &at, errors);
                if errors.len() == known {
                    let times = times.unwrap_or_else(|| most(&read));
                    for name in ["rule", "messageExpression"] {
                        let once = cost(rule[name].as_str().unwrap_or_default(), &read);
                        costs.note(name, format!("{at}.{name}"), once.saturating_mul(times));
                    }
                }
            }
        } else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            errors.push(FieldError::new(format!("{at}.{KEYWORD}"), Problem::Internal, detail));
        }
    }
    if depth == MAX_DEPTH {
        return;
    }
    let loses = (schema["type"] == "array" && schema["x-kubernetes-list-type"] != "map")
        || schema["x-kubernetes-map-type"] == "atomic";
    let lost = lost.or(loses.then_some(at));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.properties[{name}]");
        walk(property, &Place { at: &at, root: false, lost, times }, depth + 1, costs, errors);
    }
    let limit = if schema["type"] == "array" { &schema["maxItems"] } else { &schema["maxProperties"] };
    let times = times.and_then(|times| Some(times.saturating_mul(limit.as_u64()?)));
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            let at = format!("{at}.{keyword}");
            walk(&schema[keyword], &Place { at: &at, root: false, lost, times }, depth + 1, costs, errors);
        }
    }
}

fn check_rule(rule: &Value, schema: &Schema, root: bool, lost: Option<&str>, at: &str, errors: &mut Vec<FieldError>) {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let field = |name: &str| format!("{at}.{name}");
    let source = text("rule");
    let known = errors.len();
    check_texts(rule, schema, at, errors);
    if source.trim().is_empty() {
        errors.push(FieldError::required(field("rule"), "rule is not specified"));
    }
    // Expressions are compiled when nothing else is wrong.
    if errors.len() > known {
        return;
    }
    let optional = rule["optionalOldSelf"] == true;
    let whole = root || schema.embedded_resource;
    let refuse = |name: &str, words: String| {
        FieldError::new(field(name), Problem::InvalidHidden, format!("{}: {words}", shown::rule(rule)))
    };
    if let Some(problem) = compile_problem(source, schema, whole, optional, "bool") {
        errors.push(refuse("rule", problem.of_rule()));
    } else {
        let uses_old_self = uses_old_self(source);
        if let Some(place) = lost.filter(|_| uses_old_self) {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {place}");
            errors.push(FieldError::invalid(field("rule"), source, detail));
        }
        if !rule["optionalOldSelf"].is_null() && !uses_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(field("optionalOldSelf"), optional, detail));
        }
    }
    let message = text("messageExpression");
    if !message.trim().is_empty()
        && let Some(problem) = compile_problem(message, schema, whole, optional, "string")
    {
        errors.push(refuse("messageExpression", problem.of_message()));
    }
}

fn check_texts(rule: &Value, schema: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("{at}.{name}");
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let message = text("message");
    if blank(message) {
        errors.push(FieldError::invalid(field("message"), message, "must be non-empty if specified"));
    } else if has_breaks(message.trim()) {
        errors.push(FieldError::invalid(field("message"), message, "must not contain line breaks"));
    } else if has_breaks(text("rule").trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(field("message"), detail));
    }
    if blank(text("messageExpression")) {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(field("messageExpression"), detail));
    }
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(field("reason"), reason, &REASONS));
    }
    let path = text("fieldPath");
    if path.is_empty() {
        return;
    }
    if blank(path) {
        errors.push(FieldError::invalid(field("fieldPath"), path, "must be non-empty if specified"));
    }
    if has_breaks(path) {
        errors.push(FieldError::invalid(field("fieldPath"), path, "must not contain line breaks"));
    }
    if !leads_somewhere(schema, path) {
        errors.push(FieldError::invalid(field("fieldPath"), path, "must be a valid path"));
    }
}

/// Whether a field path leads to a place that the schema knows.
fn leads_somewhere(schema: &Schema, path: &str) -> bool {
    let Some(steps) = steps(path).filter(|steps| !steps.is_empty()) else {
        return false;
    };
    let mut place = schema;
    steps.iter().all(|name| {
        place.member(name).is_some_and(|inner| {
            place = inner;
            true
        })
    })
}
