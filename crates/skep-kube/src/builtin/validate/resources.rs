//! Requests and limits.

use super::super::Quantity;
use super::super::default::is_shared_in_pods;
use super::super::place::{At, NOT_NEGATIVE};
use crate::names::qualified_name;
use crate::status::FieldError;

pub(super) fn resources(place: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let limits = place.member("limits");
    let requests = place.member("requests");
    for (name, value) in place.entries("limits") {
        errors.extend(amount(&limits, name, value.as_str().unwrap_or_default()));
    }
    let mut unlimited = false;
    for (name, value) in place.entries("requests") {
        let text = value.as_str().unwrap_or_default();
        errors.extend(amount(&requests, name, text));
        let limit = limits.value[name].as_str().and_then(Quantity::parse);
        match (Quantity::parse(text), limit) {
            (Some(request), Some(limit)) => {
                let shown = limit.canonical();
                if !may_overcommit(name) && request.partial_cmp(&limit) != Some(std::cmp::Ordering::Equal) {
                    let detail = format!("must be equal to {name} limit of {shown}");
                    errors.push(requests.invalid_as(text, &detail));
                } else if request > limit {
                    let detail = format!("must be less than or equal to {name} limit of {shown}");
                    errors.push(requests.invalid_as(text, &detail));
                }
            }
            (Some(_), None) => unlimited |= !may_overcommit(name),
            (None, _) => {}
        }
    }
    if unlimited {
        errors.push(limits.required("Limit must be set for non overcommitable resources"));
    }
    errors
}

/// What all containers of a pod may have together.
pub(super) fn of_pod(place: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for kind in ["limits", "requests"] {
        let list = place.member(kind);
        let foreign = place.entries(kind).filter(|(name, _)| !is_shared_in_pods(name));
        let supported = ["cpu", "hugepages-", "memory"];
        errors.extend(foreign.map(|(name, _)| FieldError::not_supported(list.key(name), name, &supported)));
    }
    if errors.is_empty() { resources(place) } else { errors }
}

/// What a pod costs beside its containers. The real server takes it for limits.
pub(super) fn overhead(place: &At<'_>) -> Vec<FieldError> {
    let shown = place.member("limits");
    let amounts = place.value.as_object().into_iter().flatten();
    amounts.flat_map(|(name, value)| amount(&shown, name, value.as_str().unwrap_or_default())).collect()
}

/// Resources of which more may be promised than there is.
fn may_overcommit(name: &str) -> bool {
    !name.contains('/') && !name.starts_with("hugepages-")
}

fn amount(list: &At<'_>, name: &str, text: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = list.key(name);
    let mut refuse = |value: &str, detail: &str| errors.push(FieldError::invalid(path.as_str(), value, detail));
    for message in qualified_name(name) {
        refuse(name, &message);
    }
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !standard {
        if !matches!(name, "pods" | "services" | "storage" | "secrets" | "configmaps") {
            refuse(name, "must be a standard resource type or fully qualified");
        }
        refuse(name, "must be a standard resource for containers");
    }
    if let Some(quantity) = Quantity::parse(text) {
        if quantity.is_negative() {
            refuse(text, NOT_NEGATIVE);
        }
        if name.contains('/') && !quantity.is_whole() {
            refuse(text, "must be an integer");
        }
    }
    errors
}
