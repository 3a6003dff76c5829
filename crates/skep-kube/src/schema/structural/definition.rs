//! The names of a CustomResourceDefinition and how they fit together.

use serde_json::Value;

use super::super::validate::{kind_problem, label_problem};
use crate::status::FieldError;

const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const APPROVAL: &str = "api-approved.kubernetes.io";

pub(super) fn check(document: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &document["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, group) = (text(&document["metadata"]["name"]), text(&spec["group"]));
    if !name.is_empty() && !is_subdomain(&name) {
        errors.push(FieldError::invalid("metadata.name", name.as_str(), SUBDOMAIN_WORDS));
    }
    if name != format!("{}.{group}", text(&spec["names"]["plural"])) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    errors.extend(check_group(&group, document));
    match text(&spec["scope"]).as_str() {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    if spec["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                      instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors.extend(check_names(&spec["names"]));
    errors.extend(check_conversion(&spec["conversion"]));
    errors
}

fn check_group(group: &str, document: &Value) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    if !is_subdomain(group) {
        return Some(FieldError::invalid("spec.group", group, SUBDOMAIN_WORDS));
    }
    if !group.contains('.') {
        return Some(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    let protected = [".k8s.io", ".kubernetes.io"].iter().any(|suffix| format!(".{group}").ends_with(suffix));
    if protected && document["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default().is_empty() {
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        return Some(FieldError::required(format!("metadata.annotations[{APPROVAL}]"), detail));
    }
    None
}

fn check_names(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |name: &str| names[name].as_str().unwrap_or_default().to_owned();
    let kind = text("kind");
    // The server fills these in from the kind.
    let or = |given: String, otherwise: String| if given.is_empty() && !kind.is_empty() { otherwise } else { given };
    let singular = or(text("singular"), kind.to_lowercase());
    let list_kind = or(text("listKind"), format!("{kind}List"));
    for (name, value, is_kind) in [
        ("plural", text("plural"), false),
        ("singular", singular, false),
        ("kind", kind.clone(), true),
        ("listKind", list_kind.clone(), true),
    ] {
        let field = format!("spec.names.{name}");
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if let Some(problem) = if is_kind { kind_problem(&value) } else { label_problem(&value) } {
            errors.push(FieldError::invalid(field, value, problem));
        }
    }
    for list in ["shortNames", "categories"] {
        for (index, name) in names[list].as_array().into_iter().flatten().filter_map(Value::as_str).enumerate() {
            if let Some(problem) = label_problem(name) {
                errors.push(FieldError::invalid(format!("spec.names.{list}[{index}]"), name, problem));
            }
        }
    }
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", list_kind, detail));
    }
    errors
}

fn check_conversion(conversion: &Value) -> Vec<FieldError> {
    let client = "spec.conversion.webhookClientConfig";
    let versions = "spec.conversion.conversionReviewVersions";
    let webhook = &conversion["webhook"];
    let has_versions = webhook["conversionReviewVersions"].as_array().is_some_and(|versions| !versions.is_empty());
    let mut errors = Vec::new();
    match conversion["strategy"].as_str() {
        None => {}
        Some("Webhook") => {
            if !webhook["clientConfig"].is_object() {
                errors.push(FieldError::required(client, "required when strategy is set to Webhook"));
            }
            if !has_versions {
                errors.push(FieldError::required(versions, ""));
            }
        }
        Some("None") => {
            let detail = "should not be set when strategy is not set to Webhook";
            if webhook["clientConfig"].is_object() {
                errors.push(FieldError::forbidden(client, detail));
            }
            if has_versions {
                errors.push(FieldError::forbidden(versions, detail));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"]));
        }
    }
    errors
}

fn is_subdomain(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 253
        && text.split('.').all(|label| {
            label.bytes().all(|byte| alphanumeric(byte) || byte == b'-')
                && label.bytes().next().is_some_and(alphanumeric)
                && label.bytes().last().is_some_and(alphanumeric)
        })
}
