//! The rules for `metadata`, the same for every kind but for the rule of names.

use serde_json::Value;

use super::place::{At, ordered_text};
use crate::go_text;
use crate::names::{
    NameRule, validate_annotations, validate_finalizers, validate_known_finalizers, validate_object_name,
};
use crate::status::{FieldError, Problem};

/// Which finalizers a kind takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finalizers {
    Any,
    /// Those that have a domain, and a few that are known.
    Known,
}

/// Checks the metadata of a new object, whose name has been generated already if it had none.
pub fn validate_metadata(object: &Value, name_rule: NameRule, finalizers: Finalizers) -> Vec<FieldError> {
    let metadata = At::root(object).member("metadata");
    let mut errors = validate_object_name(metadata.text("name"), metadata.text("generateName"), name_rule);
    errors.extend(common(&metadata));
    errors.extend(known_finalizers(&metadata, finalizers));
    errors
}

fn common(metadata: &At<'_>) -> Vec<FieldError> {
    let mut errors = metadata.member("labels").labels();
    let annotations = metadata.member("annotations");
    if let Some(members) = annotations.value.as_object() {
        errors.extend(validate_annotations(members, &annotations.path));
    }
    errors.extend(owners(metadata));
    errors.extend(validate_finalizers(&finalizers_of(metadata), &metadata.member("finalizers").path));
    errors
}

fn finalizers_of<'a>(metadata: &At<'a>) -> Vec<&'a str> {
    metadata.value["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn known_finalizers(metadata: &At<'_>, finalizers: Finalizers) -> Vec<FieldError> {
    match finalizers {
        Finalizers::Any => Vec::new(),
        Finalizers::Known => validate_known_finalizers(&finalizers_of(metadata), &metadata.member("finalizers").path),
    }
}

/// In the order in which they are written.
const OWNER_MEMBERS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

fn owners(metadata: &At<'_>) -> Vec<FieldError> {
    let list = metadata.member("ownerReferences");
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for owner in metadata.items("ownerReferences") {
        for name in ["apiVersion", "kind", "name", "uid"] {
            if owner.text(name).is_empty() {
                let detail = if name == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                // The real server leaves the index out.
                errors.push(list.member(name).invalid_as("", detail));
            }
        }
        if owner.text("apiVersion") == "v1" && owner.text("kind") == "Event" {
            let problem = Problem::InvalidStruct(ordered_text(owner.value, &OWNER_MEMBERS));
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::new(list.path.as_str(), problem, detail));
        }
        if owner.flag("controller") {
            let this = format!("{}/{}", owner.text("kind"), owner.text("name"));
            if let Some(other) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {other} and {this}"
                );
                let problem = Problem::InvalidStruct(owners_text(list.value));
                errors.push(FieldError::new(list.path.as_str(), problem, detail));
            } else {
                controller = Some(this);
            }
        }
    }
    errors
}

fn owners_text(owners: &Value) -> String {
    let owners: Vec<String> =
        owners.as_array().into_iter().flatten().map(|owner| ordered_text(owner, &OWNER_MEMBERS)).collect();
    format!("[{}]", owners.join(","))
}

/// Checks the metadata of an object that replaces another as the server does it for every kind, before the kind has its
/// say. It looks at labels, annotations, owners and finalizers twice, which shows in the causes.
pub fn validate_any_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate_metadata_update(new, old, Finalizers::Any);
    errors.extend(common(&At::root(new).member("metadata")));
    errors
}

/// Checks the metadata of an object that replaces another.
pub fn validate_metadata_update(new: &Value, old: &Value, finalizers: Finalizers) -> Vec<FieldError> {
    let metadata = At::root(new).member("metadata");
    let before = &old["metadata"];
    let mut errors = Vec::new();
    // What has been deleted may lose finalizers, never gain them.
    if !before["deletionTimestamp"].is_null() {
        let known = before["finalizers"].as_array().cloned().unwrap_or_default();
        let added: Vec<&Value> = new["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|name| !known.contains(name))
            .collect();
        if !added.is_empty() {
            let shown: Vec<String> =
                added.iter().map(|name| go_text::quoted(name.as_str().unwrap_or_default())).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                shown.join(", ")
            );
            errors.push(metadata.member("finalizers").forbidden(&detail));
        }
    }
    for name in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new["metadata"][name] != before[name] {
            errors.push(metadata.member(name).invalid("field is immutable"));
        }
    }
    errors.extend(common(&metadata));
    errors.extend(known_finalizers(&metadata, finalizers));
    errors
}
