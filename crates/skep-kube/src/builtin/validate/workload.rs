//! Deployments, ReplicaSets, StatefulSets, and what watches over them.

use serde_json::Value;

use super::super::place::{At, not_negative, one_of, struct_text};
use super::pod::pod_spec;
use super::{selector_text, storage};
use crate::names::percent;
use crate::selector::LabelSelector;
use crate::status::{FieldError, Problem};

pub(super) fn deployment(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors: Vec<FieldError> = not_negative(&spec.member("replicas")).into_iter().collect();
    errors.extend(selected_template(&spec, "deployment"));
    errors.extend(strategy(&spec.member("strategy")));
    for name in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        errors.extend(not_negative(&spec.member(name)));
    }
    let deadline = spec.member("progressDeadlineSeconds");
    if deadline.value.as_i64().is_some_and(|seconds| seconds <= spec.number("minReadySeconds").unwrap_or_default()) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    errors
}

pub(super) fn replica_set(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors: Vec<FieldError> = not_negative(&spec.member("replicas")).into_iter().collect();
    errors.extend(not_negative(&spec.member("minReadySeconds")));
    errors.extend(selected_template(&spec, "deployment"));
    errors
}

pub(super) fn stateful_set(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let policy = spec.member("podManagementPolicy");
    match policy.own_text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.required("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    errors.extend(update_strategy(&spec.member("updateStrategy")));
    for name in ["whenDeleted", "whenScaled"] {
        let place = spec.deep("persistentVolumeClaimRetentionPolicy").member(name);
        errors.extend(one_of(&place, &["Retain", "Delete"]));
    }
    for name in ["replicas", "minReadySeconds", "ordinals.start"] {
        errors.extend(not_negative(&spec.deep(name)));
    }
    for template in spec.items("volumeClaimTemplates") {
        errors.extend(storage::claim(&template.member("spec")));
    }
    errors.extend(selected_template(&spec, "statefulset"));
    errors
}

pub(super) fn controller_revision(root: &At<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = not_negative(&root.member("revision")).into_iter().collect();
    if !root.has("data") {
        errors.push(root.member("data").required("data is mandatory"));
    }
    errors
}

fn update_strategy(strategy: &At<'_>) -> Vec<FieldError> {
    let rolling = strategy.member("rollingUpdate");
    match strategy.text("type") {
        "RollingUpdate" => {
            let mut errors: Vec<FieldError> = not_negative(&rolling.member("partition")).into_iter().collect();
            errors.extend(amount(&rolling.member("maxUnavailable")));
            errors
        }
        "OnDelete" if rolling.is_set() => {
            vec![rolling.invalid("only allowed for updateStrategy 'RollingUpdate'")]
        }
        "OnDelete" => Vec::new(),
        "" => vec![strategy.required("")],
        _ => {
            let text = struct_text(&[
                ("Type", strategy.value["type"].to_string()),
                ("RollingUpdate", rolling.value.to_string()),
            ]);
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            vec![FieldError::new(strategy.path.as_str(), Problem::InvalidStruct(text), detail)]
        }
    }
}

/// A selector, and a template that it must select.
fn selected_template(spec: &At<'_>, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = spec.member("selector");
    let parsed = LabelSelector::from_object(selector.value).ok();
    if selector.is_set() {
        errors.extend(selector.selector());
        if parsed.as_ref().is_some_and(LabelSelector::is_everything) {
            errors.push(selector.invalid(&format!("empty selector is invalid for {kind}")));
        }
    } else {
        errors.push(selector.required(""));
    }
    let template = spec.member("template");
    let labels = template.deep("metadata.labels");
    match parsed.map(|selector| selector.matches_labels(labels.value)) {
        None => {
            let problem = Problem::InvalidStruct(selector_text(selector.value));
            let detail = if kind == "statefulset" { "" } else { "invalid label selector" };
            errors.push(FieldError::new(selector.path.as_str(), problem, detail));
            return errors;
        }
        Some(false) => errors.push(labels.invalid("`selector` does not match template `labels`")),
        Some(true) => {}
    }
    errors.extend(labels.labels());
    let pod = template.member("spec");
    errors.extend(pod_spec(&pod).into_iter().filter(|error| !names_a_claim(spec, error)));
    let policy = pod.member("restartPolicy");
    if policy.own_text() != "Always" {
        errors.retain(|error| error.field != policy.path);
        errors.push(policy.unsupported(&["Always"]));
    }
    let deadline = pod.member("activeDeadlineSeconds");
    if deadline.is_set() {
        let owner = if kind == "statefulset" { "StatefulSet" } else { "ReplicaSet" };
        errors.push(deadline.forbidden(&format!("activeDeadlineSeconds in {owner} is not Supported")));
    }
    errors
}

/// Claims of a StatefulSet become volumes of its pods, so mounting them is in order.
fn names_a_claim(spec: &At<'_>, error: &FieldError) -> bool {
    let Problem::NotFound(name) = &error.problem else { return false };
    spec.items("volumeClaimTemplates").iter().any(|claim| claim.value["metadata"]["name"] == *name)
}

fn strategy(strategy: &At<'_>) -> Vec<FieldError> {
    let rolling = strategy.member("rollingUpdate");
    match strategy.text("type") {
        "Recreate" if rolling.is_set() => {
            vec![rolling.forbidden("may not be specified when strategy `type` is 'Recreate'")]
        }
        "Recreate" => Vec::new(),
        "RollingUpdate" => {
            let unavailable = rolling.member("maxUnavailable");
            let mut errors = amount(&unavailable);
            errors.extend(amount(&rolling.member("maxSurge")));
            let nothing = |value: &Value| *value == 0 || *value == "0%";
            if nothing(unavailable.value) && nothing(&rolling.value["maxSurge"]) {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            let share = unavailable.own_text().strip_suffix('%').and_then(|number| number.parse::<u64>().ok());
            if share.is_some_and(|share| share > 100) {
                errors.push(unavailable.invalid("must not be greater than 100%"));
            }
            errors
        }
        _ => {
            let text = struct_text(&[
                ("Type", strategy.value["type"].to_string()),
                ("RollingUpdate", rolling.value.to_string()),
            ]);
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"";
            vec![FieldError::new(strategy.path.as_str(), Problem::NotSupportedStruct(text), detail)]
        }
    }
}

/// A number of pods, or a share of them.
fn amount(place: &At<'_>) -> Vec<FieldError> {
    match place.value {
        Value::String(text) => place.each(percent(text)),
        _ => not_negative(place).into_iter().collect(),
    }
}

pub(super) fn disruption_budget(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let text = struct_text(&[
            ("MinAvailable", spec.value["minAvailable"].to_string()),
            ("Selector", if spec.has("selector") { selector_text(&spec.value["selector"]) } else { "null".to_owned() }),
            ("MaxUnavailable", spec.value["maxUnavailable"].to_string()),
            ("UnhealthyPodEvictionPolicy", spec.value["unhealthyPodEvictionPolicy"].to_string()),
        ]);
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::new(spec.path.as_str(), Problem::InvalidStruct(text), detail));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let place = spec.member(name);
        errors.extend(amount(&place));
        let share = place.own_text().strip_suffix('%').and_then(|number| number.parse::<u64>().ok());
        if share.is_some_and(|share| share > 100) {
            errors.push(place.invalid("must not be greater than 100%"));
        }
    }
    errors.extend(one_of(&spec.member("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]));
    if spec.has("selector") {
        errors.extend(spec.member("selector").selector());
    }
    errors
}

const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn autoscaler(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let smallest = spec.member("minReplicas");
    let largest = spec.member("maxReplicas");
    let (low, high) = (smallest.value.as_i64(), largest.value.as_i64().unwrap_or_default());
    if low.is_some_and(|number| number < 1) {
        errors.push(smallest.invalid("must be greater than or equal to 1"));
    }
    if high < 1 {
        errors.push(largest.required("must be set and greater than 0"));
    }
    if low.is_some_and(|low| high < low) {
        errors.push(largest.invalid("must be greater than or equal to `minReplicas`"));
    }
    let target = spec.member("scaleTargetRef");
    for name in ["kind", "name"] {
        if target.text(name).is_empty() {
            errors.push(target.member(name).required(""));
        }
    }
    if !target.text("apiVersion").contains('/') && target.text("kind") != "ReplicationController" {
        let version = target.member("apiVersion");
        errors.push(version.invalid_as(version.own_text(), "apiVersion must specify API group"));
    }
    for metric in spec.items("metrics") {
        errors.extend(metric_source(&metric));
    }
    let scales_to_zero = low == Some(0);
    let from_outside = |metric: &At<'_>| matches!(metric.text("type"), "Object" | "External");
    if scales_to_zero && !spec.items("metrics").iter().any(from_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(spec.member("metrics").forbidden(detail));
    }
    errors
}

fn metric_source(metric: &At<'_>) -> Vec<FieldError> {
    let kind = metric.member("type");
    let names: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
    let Some((_, source)) = METRICS.iter().find(|(name, _)| *name == kind.own_text()) else {
        // The real server says so twice.
        return vec![kind.unsupported(&names), kind.unsupported(&names)];
    };
    if metric.has(source) {
        Vec::new()
    } else {
        vec![metric.member(source).required("must populate information for the given metric source")]
    }
}
