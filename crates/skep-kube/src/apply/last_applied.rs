//! Moving from client-side to server-side apply with kubectl.
//!
//! `kubectl apply` used to keep the last configuration in an annotation. Its fields belong to whoever runs kubectl, so
//! `kubectl apply --server-side` may take them without force, and keeps the annotation as it was used.

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::Comparison;
use super::conflict::Conflict;
use super::owned::fields_of;
use super::shape::Place;
use super::target::Target;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that migrates. Others do not.
const KUBECTL: &str = "kubectl";
/// How much the annotations of an object may hold.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The conflicts that are none with what was applied by the client and has not changed since.
pub(super) fn conflicts_to_report(
    target: &Target<'_>,
    live: &Value,
    manager: &str,
    mut conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    if manager != KUBECTL {
        return conflicts;
    }
    let place = Place::Object(target.schema);
    let text = live["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    let Ok(last) = serde_json::from_str::<Value>(text) else { return conflicts };
    if check(place, &last, Duplicates::Refused).is_err() {
        return conflicts;
    }
    let difference = Comparison::between(place, &last, live);
    let allowed = fields_of(place, &last).leaves().difference(&difference.changed()).difference(&difference.removed);
    conflicts.retain(|conflict| !allowed.contains(&conflict.path));
    conflicts
}

/// Writes what was applied into the annotation, if there is one.
pub(super) fn keep_current(object: &mut Value, applied: &Value, manager: &str) {
    if manager != KUBECTL {
        return;
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    if !annotations.contains_key(ANNOTATION) {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), (escaped(&crate::sorted::text(&applied)) + "\n").into());
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.remove(ANNOTATION);
    }
}

/// JSON as Go writes it, fit to stand in HTML. The characters appear inside of strings only.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}
