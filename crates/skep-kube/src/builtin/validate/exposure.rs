//! How a service can be reached: by which families of addresses, and from where.

use std::collections::HashSet;

use super::super::place::{At, one_of};
use crate::names::{RANGE_FORM, address_range, qualified_name};
use crate::status::FieldError;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Nothing else is looked at when the families are wrong.
pub(super) fn wrong_families(spec: &At<'_>) -> Option<Vec<FieldError>> {
    if spec.text("type") == "ExternalName" {
        return None;
    }
    let mut errors = malformed_families(spec);
    if errors.is_empty() {
        errors = impossible_families(spec);
    }
    (!errors.is_empty()).then_some(errors)
}

fn malformed_families(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let families = spec.items("ipFamilies");
    let mut seen = HashSet::new();
    for family in &families {
        if !FAMILIES.contains(&family.own_text()) {
            errors.push(family.unsupported(&FAMILIES));
        } else if !seen.insert(family.own_text()) {
            errors.push(family.duplicate());
        }
    }
    let policy = spec.member("ipFamilyPolicy");
    errors.extend(one_of(&policy, &POLICIES));
    if errors.is_empty() && families.len() > 1 && matches!(policy.own_text(), "" | "SingleStack") {
        let detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        errors.push(policy.invalid_as("SingleStack", detail));
    }
    errors
}

/// Services have addresses of the old family only. One without addresses may say what it likes.
fn impossible_families(spec: &At<'_>) -> Vec<FieldError> {
    let families = spec.items("ipFamilies");
    if spec.text("clusterIP") == "None" && families.len() != 1 {
        return Vec::new();
    }
    let policy = spec.member("ipFamilyPolicy");
    if policy.own_text() == "RequireDualStack" {
        return vec![policy.invalid("this cluster is not configured for dual-stack services")];
    }
    let missing = families.iter().filter(|family| family.own_text() == "IPv6");
    missing.map(|family| family.invalid("not configured on this cluster")).collect()
}

/// What a service without addresses of its own cannot have.
pub(super) fn of_a_name(spec: &At<'_>) -> Vec<FieldError> {
    let set = ["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|name| spec.has(name));
    set.map(|name| spec.member(name).forbidden("may not be set for ExternalName services")).collect()
}

/// From where, and by which way, the service is reached.
pub(super) fn traffic(spec: &At<'_>) -> Vec<FieldError> {
    const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balanced = spec.text("type") == "LoadBalancer";
    let mut errors = Vec::new();
    // That is how the real server writes it.
    let ranges = spec.member("LoadBalancerSourceRanges");
    let listed = spec.items("loadBalancerSourceRanges");
    if !is_balanced && !listed.is_empty() {
        errors.push(ranges.forbidden(ONLY_BALANCED));
    }
    for (index, range) in listed.iter().enumerate() {
        if address_range(range.own_text().trim()).is_none() {
            errors.push(ranges.index(index).invalid_as(range.own_text(), RANGE_FORM));
        }
    }
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let place = spec.member(name);
        if place.is_set() && !is_balanced {
            errors.push(place.forbidden(ONLY_BALANCED));
        } else if name == "loadBalancerClass" && place.is_set() {
            errors.extend(place.each(qualified_name(place.own_text())));
        }
    }
    errors.extend(external(spec));
    errors.extend(one_of(&spec.member("internalTrafficPolicy"), &["Cluster", "Local"]));
    let distribution = spec.member("trafficDistribution");
    errors.extend(one_of(&distribution, &["PreferClose", "PreferSameZone", "PreferSameNode"]));
    errors
}

fn external(spec: &At<'_>) -> Vec<FieldError> {
    let kind = spec.text("type");
    let is_external =
        matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && !spec.items("externalIPs").is_empty());
    let mut errors = Vec::new();
    let policy = spec.member("externalTrafficPolicy");
    if is_external {
        errors.extend(one_of(&policy, &["Cluster", "Local"]));
    } else if !policy.own_text().is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    let health = spec.member("healthCheckNodePort");
    let is_checked = kind == "LoadBalancer" && policy.own_text() == "Local";
    if !is_checked && health.value.as_i64().is_some_and(|port| port != 0) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(health.invalid(detail));
    }
    errors
}
