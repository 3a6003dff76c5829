//! The rules for `metadata`, the same for every kind but for the rule of names.

use serde_json::Value;

use super::place::{At, ordered_text};
use crate::go_text;
use crate::names::{NameRule, validate_annotations, validate_finalizers, validate_object_name};
use crate::status::{FieldError, Problem};

/// Checks the metadata of a new object, whose name has been generated already if it had none.
pub fn validate_metadata(object: &Value, name_rule: NameRule) -> Vec<FieldError> {
    let metadata = At::root(object).member("metadata");
    let mut errors = validate_object_name(metadata.text("name"), metadata.text("generateName"), name_rule);
    errors.extend(common(&metadata));
    errors
}

fn common(metadata: &At<'_>) -> Vec<FieldError> {
    let mut errors = metadata.member("labels").labels();
    let annotations = metadata.member("annotations");
    if let Some(members) = annotations.value.as_object() {
        errors.extend(validate_annotations(members, &annotations.path));
    }
    errors.extend(owners(metadata));
    let finalizers: Vec<&str> = metadata.items("finalizers").iter().map(At::own_text).collect();
    errors.extend(validate_finalizers(&finalizers, &metadata.member("finalizers").path));
    errors
}

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
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let owners: Vec<String> =
        owners.as_array().into_iter().flatten().map(|owner| ordered_text(owner, &order)).collect();
    format!("[{}]", owners.join(","))
}

/// Checks the metadata of an object that replaces another.
pub fn validate_metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
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
    errors
}
