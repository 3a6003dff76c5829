//! Roles and their bindings.

use super::super::place::At;
use crate::names::{dns1123_subdomain, path_segment};
use crate::status::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(root: &At<'_>) -> Vec<FieldError> {
    root.items("rules").iter().flat_map(|rule| policy_rule(rule, true)).collect()
}

pub(super) fn cluster_role(root: &At<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = root.items("rules").iter().flat_map(|rule| policy_rule(rule, false)).collect();
    let aggregation = root.member("aggregationRule");
    if aggregation.is_set() {
        let selectors = aggregation.items("clusterRoleSelectors");
        if selectors.is_empty() {
            let place = aggregation.member("clusterRoleSelectors");
            errors.push(place.required("at least one clusterRoleSelector required if aggregationRule is non-nil"));
        }
        errors.extend(selectors.iter().flat_map(At::selector));
    }
    errors
}

fn policy_rule(rule: &At<'_>, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let empty = |name: &str| rule.value[name].as_array().is_none_or(Vec::is_empty);
    if empty("verbs") {
        errors.push(rule.member("verbs").required("verbs must contain at least one value"));
    }
    if !empty("nonResourceURLs") {
        let urls = rule.member("nonResourceURLs");
        if namespaced {
            errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
            errors.push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
        }
        return errors;
    }
    if empty("apiGroups") {
        errors.push(rule.member("apiGroups").required("resource rules must supply at least one api group"));
    }
    if empty("resources") {
        errors.push(rule.member("resources").required("resource rules must supply at least one resource"));
    }
    errors
}

pub(super) fn role_binding(root: &At<'_>) -> Vec<FieldError> {
    binding(root, &["Role", "ClusterRole"], true)
}

pub(super) fn cluster_role_binding(root: &At<'_>) -> Vec<FieldError> {
    binding(root, &["ClusterRole"], false)
}

fn binding(root: &At<'_>, kinds: &[&str], namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = root.member("roleRef");
    if role.text("apiGroup") != GROUP {
        errors.push(role.member("apiGroup").unsupported(&[GROUP]));
    }
    if !kinds.contains(&role.text("kind")) {
        errors.push(role.member("kind").unsupported(kinds));
    }
    let name = role.member("name");
    if name.own_text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.each(path_segment(name.own_text())));
    }
    for subject in root.items("subjects") {
        errors.extend(check_subject(&subject, namespaced));
    }
    errors
}

fn check_subject(subject: &At<'_>, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = subject.member("name");
    if name.own_text().is_empty() {
        errors.push(name.required(""));
    }
    let group = subject.member("apiGroup");
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.own_text().is_empty() {
                errors.extend(name.each(dns1123_subdomain(name.own_text())));
            }
            if !group.own_text().is_empty() {
                errors.push(group.unsupported(&[""]));
            }
            if !namespaced && subject.text("namespace").is_empty() {
                errors.push(subject.member("namespace").required(""));
            }
        }
        "User" | "Group" => {
            if group.own_text() != GROUP {
                errors.push(group.unsupported(&[GROUP]));
            }
        }
        _ => errors.push(subject.member("kind").unsupported(&["ServiceAccount", "User", "Group"])),
    }
    errors
}
