//! How the pods of a set are spread over nodes.

use std::collections::HashMap;

use super::super::place::{At, one_of};
use crate::names::qualified_name;
use crate::status::FieldError;

pub(super) fn spreading(spec: &At<'_>) -> Vec<FieldError> {
    let constraints = spec.items("topologySpreadConstraints");
    let pair = |constraint: &At<'_>| format!("{{{}, {}}}", constraint.text("topologyKey"), constraint.text(ACTION));
    let mut later: HashMap<String, usize> = HashMap::new();
    for constraint in &constraints {
        *later.entry(pair(constraint)).or_default() += 1;
    }
    let mut errors = Vec::new();
    for constraint in &constraints {
        errors.extend(one(constraint));
        let shown = pair(constraint);
        let count = later.entry(shown.clone()).or_default();
        *count -= 1;
        if *count > 0 {
            errors.push(FieldError::duplicate(constraint.member("{topologyKey, whenUnsatisfiable}").path, shown));
        }
    }
    errors
}

/// Which constraints count no pod at all.
pub(super) fn warnings(spec: &At<'_>) -> Vec<String> {
    let constraints = spec.items("topologySpreadConstraints").into_iter();
    let selectors = constraints.map(|constraint| constraint.member("labelSelector")).filter(|place| !place.is_set());
    selectors.map(|place| format!("{}: a null labelSelector results in matching no pod", place.path)).collect()
}

const ACTION: &str = "whenUnsatisfiable";

fn one(constraint: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let skew = constraint.member("maxSkew");
    if skew.value.as_i64().unwrap_or_default() <= 0 {
        errors.push(skew.invalid("must be greater than zero"));
    }
    let key = constraint.member("topologyKey");
    if key.own_text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    let action = constraint.member(ACTION);
    if !matches!(action.own_text(), "DoNotSchedule" | "ScheduleAnyway") {
        errors.push(action.unsupported(&["DoNotSchedule", "ScheduleAnyway"]));
    }
    errors.extend(domains(constraint));
    for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        errors.extend(one_of(&constraint.member(name), &["Honor", "Ignore"]));
    }
    errors.extend(label_keys(constraint));
    errors.extend(constraint.member("labelSelector").selector());
    errors
}

fn domains(constraint: &At<'_>) -> Option<FieldError> {
    let domains = constraint.member("minDomains");
    let least = domains.value.as_i64()?;
    let action = constraint.text(ACTION);
    if least <= 0 {
        return Some(domains.invalid("must be greater than zero"));
    }
    let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
    (action != "DoNotSchedule").then(|| domains.invalid(&detail))
}

fn label_keys(constraint: &At<'_>) -> Vec<FieldError> {
    let keys = constraint.items("matchLabelKeys");
    if !keys.is_empty() && !constraint.has("labelSelector") {
        let detail = "must not be specified when labelSelector is not set";
        return vec![constraint.member("matchLabelKeys").forbidden(detail)];
    }
    keys.iter().flat_map(|key| key.each(qualified_name(key.own_text()))).collect()
}
