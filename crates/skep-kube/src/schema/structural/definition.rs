//! A CustomResourceDefinition as a whole.

use serde_json::Value;

use super::{names, versions};
use crate::names::dns1123_subdomain;
use crate::status::FieldError;

const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const APPROVAL: &str = "api-approved.kubernetes.io";

/// The name of a definition says what it defines. It cannot change, so that it is looked at once.
pub(super) fn check_name(document: &Value) -> Option<FieldError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&document["metadata"]["name"]);
    let (plural, group) = (text(&document["spec"]["names"]["plural"]), text(&document["spec"]["group"]));
    let detail = "must be spec.names.plural+\".\"+spec.group";
    (name != format!("{plural}.{group}")).then(|| FieldError::invalid("metadata.name", name, detail))
}

pub(super) fn check_spec(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(check_group(spec["group"].as_str().unwrap_or_default()));
    errors.extend(check_scope(spec["scope"].as_str().unwrap_or_default()));
    errors.extend(versions::check_each(spec));
    errors.extend(versions::check_together(spec));
    errors.extend(names::check_presence(&spec["names"], "spec.names"));
    errors.extend(names::check(&spec["names"], "spec.names"));
    errors.extend(versions::check_common(spec));
    errors.extend(check_conversion(&spec["conversion"]));
    errors
}

fn check_group(group: &str) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    if !dns1123_subdomain(group).is_empty() {
        return Some(FieldError::invalid("spec.group", group, SUBDOMAIN_WORDS));
    }
    let detail = "should be a domain with at least one dot";
    (!group.contains('.')).then(|| FieldError::invalid("spec.group", group, detail))
}

fn check_scope(scope: &str) -> Option<FieldError> {
    match scope {
        "" => Some(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => None,
        other => Some(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
}

/// Groups of Kubernetes itself need somebody's approval. What went without it before may go on without it.
pub(super) fn check_approval(document: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = document["spec"]["group"].as_str().unwrap_or_default();
    let is_protected = [".k8s.io", ".kubernetes.io"].iter().any(|suffix| format!(".{group}").ends_with(suffix));
    let is_approved =
        |document: &Value| !document["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default().is_empty();
    if !is_protected || is_approved(document) || old.is_some_and(|old| !is_approved(old)) {
        return None;
    }
    let detail = format!(
        "protected groups must have approval annotation \"{APPROVAL}\", see \
         https://github.com/kubernetes/enhancements/pull/1111"
    );
    Some(FieldError::required(format!("metadata.annotations[{APPROVAL}]"), detail))
}

pub(super) fn check_preserve(spec: &Value) -> Option<FieldError> {
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                  instead";
    (spec["preserveUnknownFields"] == true).then(|| FieldError::invalid("spec.preserveUnknownFields", true, detail))
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
