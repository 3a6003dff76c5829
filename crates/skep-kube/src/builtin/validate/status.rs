//! What controllers and nodes may say of objects.

use serde_json::Value;

use super::super::place::{At, NOT_NEGATIVE};
use super::IMMUTABLE;
use crate::names::{ADDRESS_FORM, address, dns1123_subdomain, qualified_name};
use crate::status::{FieldError, Problem};

/// Checks the status that is to replace that of `old`.
pub(super) fn status(kind: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let status = At { path: "status".to_owned(), value: &new["status"] };
    let before = &old["status"];
    match kind {
        "Deployment" => {
            let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
            let mut errors =
                counts(&status, &["updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"]);
            errors.extend(collisions(&status, None));
            errors.extend(parts_of_all(&status, &parts, "readyReplicas"));
            errors.extend(collisions(&status, Some(before)));
            errors
        }
        "ReplicaSet" => {
            let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
            let mut errors = counts(&status, &parts);
            errors.extend(parts_of_all(&status, &parts, "readyReplicas"));
            errors
        }
        "StatefulSet" => {
            let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
            let mut errors = counts(&status, &parts);
            errors.extend(collisions(&status, None));
            errors.extend(parts_of_all(&status, &parts, "status.readyReplicas"));
            errors.extend(collisions(&status, Some(before)));
            errors
        }
        "Pod" => pod(&status, before),
        "Service" => balancer(&status, new).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Only a Service that asks for a load balancer has one.
fn balancer(status: &At<'_>, service: &Value) -> Option<FieldError> {
    let ingress = status.deep("loadBalancer.ingress");
    let has_some = ingress.value.as_array().is_some_and(|items| !items.is_empty());
    let refused = has_some && service["spec"]["type"] != "LoadBalancer";
    refused.then(|| ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"))
}

/// Numbers that count something.
fn counts(status: &At<'_>, parts: &[&str]) -> Vec<FieldError> {
    let all = ["replicas"].iter().chain(parts).chain(&["observedGeneration"]);
    let places = all.map(|name| status.member(name));
    let negative = places.filter(|place| place.value.as_i64().is_some_and(|number| number < 0));
    negative.map(|place| place.invalid(NOT_NEGATIVE)).collect()
}

/// How often a name was taken already only grows.
fn collisions(status: &At<'_>, before: Option<&Value>) -> Option<FieldError> {
    let count = status.member("collisionCount");
    let number = count.value.as_i64().unwrap_or_default();
    match before.map(|before| before["collisionCount"].as_i64()) {
        None => (number < 0).then(|| count.invalid(NOT_NEGATIVE)),
        Some(old) => (number < old?).then(|| count.invalid_as(number, "cannot be decremented")),
    }
}

/// Some are never more than all. `ready` is how the kind names those that are ready.
fn parts_of_all(status: &At<'_>, parts: &[&str], ready: &str) -> Vec<FieldError> {
    let number = |name: &str| status.number(name).unwrap_or_default();
    let more_than = |name: &str, limit: i64, of: &str| {
        (number(name) > limit)
            .then(|| status.member(name).invalid_as(number(name), &format!("cannot be greater than {of}")))
    };
    let mut errors: Vec<FieldError> =
        parts.iter().filter_map(|name| more_than(name, number("replicas"), "status.replicas")).collect();
    errors.extend(more_than("availableReplicas", number("readyReplicas"), ready));
    errors
}

fn pod(status: &At<'_>, before: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let node = status.member("nominatedNodeName");
    if !node.own_text().is_empty() {
        errors.extend(node.each(dns1123_subdomain(node.own_text())));
    }
    for condition in status.items("conditions") {
        let type_ = condition.text("type");
        let shown = condition.member("Type");
        errors.extend(qualified_name(type_).iter().map(|problem| shown.invalid_as(type_, problem)));
    }
    errors.extend(addresses(status, "podIPs"));
    errors.extend(host_address(status));
    errors.extend(addresses(status, "hostIPs"));
    let quality = status.member("qosClass");
    if before["qosClass"].is_string() && *quality.value != before["qosClass"] {
        errors.push(quality.invalid(IMMUTABLE));
    }
    let generation = status.member("observedGeneration");
    if generation.value.as_i64().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be a non-negative integer"));
    }
    errors
}

/// Of each family one.
fn addresses(status: &At<'_>, list: &str) -> Vec<FieldError> {
    let places = status.items(list);
    let texts: Vec<&str> = places.iter().map(|place| place.text("ip")).collect();
    let wrong = places.iter().filter(|place| address(place.text("ip")).is_none());
    let mut errors: Vec<FieldError> = wrong.map(|place| place.invalid_as(place.text("ip"), ADDRESS_FORM)).collect();
    let of_family = |is_new: bool| texts.iter().filter(|text| text.contains(':') == is_new).count();
    if errors.is_empty() && (of_family(true) > 1 || of_family(false) > 1) {
        let shown: Vec<String> = texts.iter().map(|text| format!("{{\"IP\":{text:?}}}")).collect();
        let problem = Problem::InvalidStruct(format!("[{}]", shown.join(",")));
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::new(status.member(list).path, problem, detail));
    }
    errors
}

fn host_address(status: &At<'_>) -> Option<FieldError> {
    let first = status.items("hostIPs").into_iter().next()?.member("ip");
    (first.own_text() != status.text("hostIP")).then(|| first.invalid("must be equal to `hostIP`"))
}
