//! Where pods want to be, and beside whom.

use super::super::place::At;
use crate::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use crate::status::FieldError;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NOT_AN_OPERATOR: &str = "not a valid selector operator";

pub(super) fn affinity(affinity: &At<'_>) -> Vec<FieldError> {
    let node = affinity.member("nodeAffinity");
    let mut errors = Vec::new();
    let required = node.member(REQUIRED);
    if required.is_set() {
        errors.extend(node_selector(&required));
    }
    for preference in node.items(PREFERRED) {
        errors.extend(weight(&preference));
        errors.extend(node_term(&preference.member("preference")));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let beside = affinity.member(kind);
        for term in beside.items(REQUIRED) {
            errors.extend(pod_term(&term));
        }
        for preference in beside.items(PREFERRED) {
            errors.extend(weight(&preference));
            errors.extend(pod_term(&preference.member("podAffinityTerm")));
        }
    }
    errors
}

fn weight(preference: &At<'_>) -> Option<FieldError> {
    let weight = preference.member("weight");
    let number = weight.value.as_i64().unwrap_or_default();
    (!(1..=100).contains(&number)).then(|| weight.invalid_as(number, "must be in the range 1-100"))
}

/// Which nodes will do.
pub(super) fn node_selector(selector: &At<'_>) -> Vec<FieldError> {
    let terms = selector.items("nodeSelectorTerms");
    if terms.is_empty() {
        return vec![selector.member("nodeSelectorTerms").required("must have at least one node selector term")];
    }
    terms.iter().flat_map(node_term).collect()
}

fn node_term(term: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for requirement in term.items("matchExpressions") {
        errors.extend(on_labels(&requirement));
    }
    for requirement in term.items("matchFields") {
        errors.extend(on_fields(&requirement));
    }
    errors
}

fn on_labels(requirement: &At<'_>) -> Vec<FieldError> {
    let (operator, values) = (requirement.member("operator"), requirement.member("values"));
    let listed = requirement.items("values");
    let mut errors = Vec::new();
    match operator.own_text() {
        "In" | "NotIn" if listed.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !listed.is_empty() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if listed.len() != 1 => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(operator.invalid_as(operator.own_text(), NOT_AN_OPERATOR)),
    }
    let key = requirement.member("key");
    errors.extend(named(&key));
    for value in listed {
        errors.extend(value.each(label_value(value.own_text())));
    }
    errors
}

fn on_fields(requirement: &At<'_>) -> Vec<FieldError> {
    let (operator, key) = (requirement.member("operator"), requirement.member("key"));
    let values = requirement.items("values");
    let mut errors = Vec::new();
    match operator.own_text() {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(requirement.member("values").required(detail));
        }
        "In" | "NotIn" => {}
        _ => errors.push(operator.invalid_as(operator.own_text(), NOT_AN_OPERATOR)),
    }
    if key.own_text() == "metadata.name" {
        for value in values {
            errors.extend(value.each(dns1123_subdomain(value.own_text())));
        }
    } else {
        errors.push(key.invalid_as(key.own_text(), "not a valid field selector key"));
    }
    errors
}

/// Beside which pods, and how near.
fn pod_term(term: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["labelSelector", "namespaceSelector"] {
        let selector = term.member(name);
        if selector.is_set() {
            errors.extend(selector.selector());
        }
    }
    // The real server names the list by what is in it, and none of its items.
    let namespace = term.member("namespace");
    for name in term.items("namespaces") {
        let problems = dns1123_label(name.own_text());
        errors.extend(problems.iter().map(|problem| namespace.invalid_as(name.own_text(), problem)));
    }
    errors.extend(label_keys(term));
    let key = term.member("topologyKey");
    if key.own_text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    errors.extend(named(&key));
    errors
}

/// Keys whose values are taken from the pod itself.
fn label_keys(term: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let lists = ["matchLabelKeys", "mismatchLabelKeys"];
    for name in lists {
        if !term.has("labelSelector") && !term.items(name).is_empty() {
            errors.push(term.member(name).forbidden("must not be specified when labelSelector is not set"));
        }
    }
    let [same, other] = lists.map(|name| term.items(name));
    for key in same {
        if other.iter().any(|known| known.own_text() == key.own_text()) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
    errors
}

fn named(key: &At<'_>) -> Vec<FieldError> {
    let problems = qualified_name(key.own_text());
    problems.iter().map(|problem| key.invalid_as(key.own_text(), problem)).collect()
}
