//! Containers that are added to a pod for a while, as `kubectl debug` does.

use serde_json::Value;

use super::super::metadata::{validate_any_update, validate_metadata_update};
use super::super::place::At;
use super::container::{Volumes, one, unique};
use super::{Builtin, finalizers, pod};
use crate::status::{FieldError, Problem};

const NOT_HERE: &str = "cannot be set for an Ephemeral Container";

/// Members of other containers, in the order in which their absence is asked for.
const FOREIGN: [&str; 8] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
];

/// Checks what replaces the containers of `old`.
pub fn validate_ephemeral_update(kind: &Builtin, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate_any_update(new, old);
    errors.extend(validate_metadata_update(new, old, finalizers(kind)));
    let root = At::root(new);
    errors.extend(pod::pod(&root));
    let list = root.member("spec").member("ephemeralContainers");
    errors.extend(only_added(&list, &old["spec"]["ephemeralContainers"]));
    errors
}

/// A pod is made without them.
pub(super) fn at_creation(root: &At<'_>) -> Option<FieldError> {
    let list = root.member("spec").member("ephemeralContainers");
    (!root.member("spec").items("ephemeralContainers").is_empty()).then(|| list.forbidden("cannot be set on create"))
}

/// The rules of the list. `names` has those of all other containers of the pod.
pub(super) fn containers<'a>(
    spec: &At<'a>,
    volumes: &Volumes<'_>,
    names: &mut std::collections::HashSet<&'a str>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for container in spec.items("ephemeralContainers") {
        errors.extend(one(spec, &container, volumes));
        errors.extend(unique(&container, names));
        errors.extend(target(spec, &container));
        errors.extend(
            FOREIGN.iter().map(|name| container.member(name)).filter(is_given).map(|at| at.forbidden(NOT_HERE)),
        );
        for mount in container.items("volumeMounts") {
            for part in ["subPath", "subPathExpr"] {
                if !mount.text(part).is_empty() {
                    errors.push(mount.member(part).forbidden(NOT_HERE));
                }
            }
        }
    }
    errors
}

fn is_given(place: &At<'_>) -> bool {
    match place.value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

fn target(spec: &At<'_>, container: &At<'_>) -> Option<FieldError> {
    let target = container.member("targetContainerName");
    let name = target.own_text();
    let is_there = ["containers", "initContainers"]
        .iter()
        .any(|list| spec.items(list).iter().any(|container| container.text("name") == name));
    (!name.is_empty() && !is_there).then(|| FieldError::new(target.path.as_str(), Problem::NotFound(name.into()), ""))
}

/// What is there stays, and stays as it is.
fn only_added(list: &At<'_>, old: &Value) -> Vec<FieldError> {
    let new = list.value.as_array().map_or(&[][..], Vec::as_slice);
    let complain =
        |name: &Value, what: &str| list.forbidden(&format!("existing ephemeral containers {name} may not be {what}\n"));
    let before = old.as_array().map_or(&[][..], Vec::as_slice);
    before
        .iter()
        .filter_map(|container| match new.iter().find(|other| other["name"] == container["name"]) {
            None => Some(complain(&container["name"], "removed")),
            Some(other) => (other != container).then(|| complain(&container["name"], "changed")),
        })
        .collect()
}
