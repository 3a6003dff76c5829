//! What may not change once an object is there.

use serde_json::Value;

use super::super::Builtin;
use super::super::metadata::{validate_any_update, validate_metadata, validate_metadata_update};
use super::super::place::{At, struct_text};
use super::{IMMUTABLE, event, finalizers, name_rule, rules, selector_text, status, storage};
use crate::status::{FieldError, Problem};

const FROZEN: &str = "field is immutable when `immutable` is set";

/// Checks an object that replaces `old`. Both must have their defaults.
pub fn validate_update(kind: &Builtin, new: &Value, old: &Value) -> Vec<FieldError> {
    if kind.kind == "Event" {
        return event::update(kind, new, old);
    }
    let looks = Looks::of(kind);
    let mut errors = validate_any_update(new, old);
    if looks.at_changes {
        errors.extend(validate_metadata_update(new, old, finalizers(kind)));
    }
    let (changes, whole) = (changes(kind, new, old), whole(kind, new, old, looks.at_everything));
    let (first, second) = if LOOKED_AT_FIRST.contains(&kind.kind) { (whole, changes) } else { (changes, whole) };
    errors.extend(first);
    errors.extend(second);
    errors
}

/// Kinds that are looked at as a whole before it is asked what has changed. Others are asked that first.
const LOOKED_AT_FIRST: [&str; 6] =
    ["Deployment", "PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicaSet", "StatefulSet"];

/// What holds for any object of a kind.
fn whole(kind: &Builtin, new: &Value, old: &Value, looks: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for _ in 0..looks {
        errors.extend(validate_metadata(new, name_rule(kind), finalizers(kind)));
    }
    errors.extend(rules(kind, new).into_iter().filter(|error| !is_old(kind, error, new, old)));
    errors
}

/// What has changed and may not.
fn changes(kind: &Builtin, new: &Value, old: &Value) -> Vec<FieldError> {
    let root = At::root(new);
    let mut errors = Vec::new();
    match kind.kind {
        "ConfigMap" => errors.extend(frozen(&root, old, &["data", "binaryData"])),
        "Secret" => {
            errors.extend(unchanged(&root, old, &["type"]));
            errors.extend(frozen(&root, old, &["data"]));
        }
        "Deployment" | "ReplicaSet" => errors.extend(selector_unchanged(&root, old)),
        "StatefulSet" => errors.extend(stateful_set(&root, old)),
        "Service" => errors.extend(service(&root, old)),
        "Pod" => errors.extend(pod(&root, old)),
        "PersistentVolumeClaim" => errors.extend(claim(&root, old)),
        "PersistentVolume" => errors.extend(volume(&root, old)),
        "RoleBinding" | "ClusterRoleBinding" => errors.extend(role_reference(&root, old)),
        "EndpointSlice" => errors.extend(unchanged(&root, old, &["addressType"])),
        "PriorityClass" => {
            if new["value"] != old["value"] {
                errors.push(root.member("value").forbidden("may not be changed in an update."));
            }
            errors.extend(unchanged(&root, old, &["preemptionPolicy"]));
        }
        "StorageClass" => {
            errors.extend(unchanged(&root, old, &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]));
        }
        "IngressClass" => errors.extend(unchanged(&root.member("spec"), &old["spec"], &["controller"])),
        "ControllerRevision" => errors.extend(unchanged(&root, old, &["data"])),
        "Node" => errors.extend(node(&root, old)),
        _ => {}
    }
    errors
}

/// Whether an error is about a list of addresses that was there before. Older rules allowed more, and what they let in
/// may stay.
fn is_old(kind: &Builtin, error: &FieldError, new: &Value, old: &Value) -> bool {
    let list = match kind.kind {
        "EndpointSlice" => "endpoints",
        "Endpoints" => "subsets",
        _ => return false,
    };
    let is_about_it = error.field.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
    is_about_it && new[list] == old[list]
}

/// Checks an update of the status alone.
pub fn validate_status_update(kind: &Builtin, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate_any_update(new, old);
    if Looks::of(kind).at_changes {
        errors.extend(validate_metadata_update(new, old, finalizers(kind)));
    }
    errors.extend(status::status(kind.kind, new, old));
    errors
}

/// How often a kind looks at the metadata of an update, when the server has looked at it already. Every look adds the
/// same causes to a refusal; the real server does not tell them apart either.
struct Looks {
    /// As of an object that replaces another.
    at_changes: bool,
    /// As of a new object.
    at_everything: usize,
}

impl Looks {
    fn of(kind: &Builtin) -> Self {
        let (at_changes, at_everything) = match kind.kind {
            "PodDisruptionBudget" => (false, 0),
            "Event" => (!kind.group.is_empty(), 0),
            "EndpointSlice" => (false, 1),
            "PersistentVolume" => (false, 2),
            "CustomResourceDefinition"
            | "Deployment"
            | "HorizontalPodAutoscaler"
            | "Lease"
            | "NetworkPolicy"
            | "PriorityClass"
            | "ReplicaSet"
            | "Service"
            | "StatefulSet" => (true, 0),
            _ => (true, 1),
        };
        Self { at_changes, at_everything }
    }
}

fn unchanged(place: &At<'_>, old: &Value, names: &[&str]) -> Vec<FieldError> {
    let changed = names.iter().filter(|name| place.value[**name] != old[**name]);
    changed
        .map(|name| {
            let member = place.member(name);
            let value = if member.is_set() { member.value.clone() } else { "".into() };
            member.invalid_as(value, IMMUTABLE)
        })
        .collect()
}

/// Config maps and secrets that were declared immutable.
fn frozen(root: &At<'_>, old: &Value, names: &[&str]) -> Vec<FieldError> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if root.value["immutable"] != true {
        errors.push(root.member("immutable").forbidden(FROZEN));
    }
    for name in names {
        if root.value[*name] != old[*name] {
            errors.push(root.member(name).forbidden(FROZEN));
        }
    }
    errors
}

fn selector_unchanged(root: &At<'_>, old: &Value) -> Option<FieldError> {
    let selector = root.deep("spec.selector");
    (*selector.value != old["spec"]["selector"]).then(|| {
        let problem = Problem::InvalidStruct(selector_text(selector.value));
        FieldError::new(selector.path.as_str(), problem, IMMUTABLE)
    })
}

fn stateful_set(root: &At<'_>, old: &Value) -> Option<FieldError> {
    let free = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let spec = root.member("spec");
    (without(spec.value, &free) != without(&old["spec"], &free)).then(|| {
        spec.forbidden(
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )
    })
}

/// A copy without these members.
fn without(value: &Value, names: &[&str]) -> Value {
    let mut copy = value.clone();
    if let Some(members) = copy.as_object_mut() {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
    copy
}

fn service(root: &At<'_>, old: &Value) -> Option<FieldError> {
    let external = |value: &Value| value["spec"]["type"] == "ExternalName";
    let before = old["spec"]["clusterIPs"][0].as_str().unwrap_or_default();
    if external(root.value) || external(old) || before.is_empty() {
        return None;
    }
    let addresses = root.deep("spec.clusterIPs");
    let agree = addresses.value[0] == root.value["spec"]["clusterIP"];
    (agree && addresses.value[0] != *before)
        .then(|| addresses.index(0).invalid_as(addresses.value.clone(), "may not change once set"))
}

/// Images, the deadline, and additional tolerations.
fn pod(root: &At<'_>, old: &Value) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let mut allowed = spec.value.clone();
    let before = &old["spec"];
    for list in ["containers", "initContainers"] {
        let counts = [&allowed, before].map(|spec| spec[list].as_array().map_or(0, Vec::len));
        if counts[0] != counts[1] {
            errors.push(spec.member(list).forbidden("pod updates may not add or remove containers"));
            return errors;
        }
        for index in 0..counts[0] {
            if spec.value[list][index]["image"].as_str().unwrap_or_default().is_empty() {
                errors.push(spec.member(list).index(index).member("image").required(""));
            }
            put(&mut allowed[list][index], &before[list][index], "image");
        }
    }
    errors.extend(deadline(&spec, before));
    errors.extend(tolerations(&spec, before));
    errors.extend(gates(&spec, before));
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut allowed, before, name);
    }
    if spec.number("terminationGracePeriodSeconds") == Some(1)
        && before["terminationGracePeriodSeconds"].as_i64() < Some(0)
    {
        put(&mut allowed, before, "terminationGracePeriodSeconds");
    }
    if allowed != *before {
        errors.push(spec.forbidden(
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
    errors
}

fn deadline(spec: &At<'_>, before: &Value) -> Option<FieldError> {
    let place = spec.member("activeDeadlineSeconds");
    let old = before["activeDeadlineSeconds"].as_i64()?;
    match place.value.as_i64() {
        None => Some(place.invalid_as(Value::Null, "must not update from a positive integer to nil value")),
        Some(new) if new > old => Some(place.invalid("must be less than or equal to previous value")),
        Some(_) => None,
    }
}

/// What a pod tolerates it goes on to tolerate, if for another time.
fn tolerations(spec: &At<'_>, before: &Value) -> Option<FieldError> {
    let of = |spec: &Value| -> Vec<Value> {
        let items = spec["tolerations"].as_array().into_iter().flatten();
        items.map(|toleration| without(toleration, &["tolerationSeconds"])).collect()
    };
    let kept = of(spec.value);
    (!of(before).iter().all(|toleration| kept.contains(toleration))).then(|| {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        spec.member("tolerations").forbidden(detail)
    })
}

/// What a pod waits for can only become less.
fn gates(spec: &At<'_>, before: &Value) -> Vec<FieldError> {
    let known = before["schedulingGates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let new = spec.items("schedulingGates").into_iter().filter(|gate| !known.contains(gate.value));
    let refuse = |gate: At<'_>| {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text("name"));
        gate.member("name").forbidden(&detail)
    };
    new.map(refuse).collect()
}

fn put(object: &mut Value, old: &Value, name: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => _ = members.insert(name.to_owned(), value.clone()),
        None => _ = members.remove(name),
    }
}

/// A claim may be bound to a volume, get a class when it has none, and grow when it is bound.
fn claim(root: &At<'_>, old: &Value) -> Option<FieldError> {
    let spec = root.member("spec");
    let before = &old["spec"];
    let mut allowed = spec.value.clone();
    if before["volumeName"].as_str().unwrap_or_default().is_empty() {
        put(&mut allowed, before, "volumeName");
    }
    if before["storageClassName"].is_null() {
        put(&mut allowed, before, "storageClassName");
    }
    if old["status"]["phase"] == "Bound" {
        put(&mut allowed, before, "resources");
        put(&mut allowed, before, "volumeAttributesClassName");
    }
    (allowed != *before).then(|| {
        spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )
    })
}

/// Everything but how the volume is used.
fn volume(root: &At<'_>, old: &Value) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    if without(spec.value, &storage::USAGE) != without(&old["spec"], &storage::USAGE) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(spec.member("persistentvolumesource").forbidden(detail));
    }
    // The real server leaves out where it is.
    let mode = At { path: "volumeMode".to_owned(), value: &spec.value["volumeMode"] };
    if *mode.value != old["spec"]["volumeMode"] {
        errors.push(mode.invalid(IMMUTABLE));
    }
    errors
}

fn role_reference(root: &At<'_>, old: &Value) -> Option<FieldError> {
    let role = root.member("roleRef");
    (*role.value != old["roleRef"]).then(|| {
        let text = struct_text(&[
            ("APIGroup", role.value["apiGroup"].to_string()),
            ("Kind", role.value["kind"].to_string()),
            ("Name", role.value["name"].to_string()),
        ]);
        FieldError::new(role.path.as_str(), Problem::InvalidStruct(text), "cannot change roleRef")
    })
}

fn node(root: &At<'_>, old: &Value) -> Vec<FieldError> {
    let spec = root.member("spec");
    let before = &old["spec"];
    let mut errors = Vec::new();
    for (name, shown) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let was_set = match &before[name] {
            Value::Array(items) => !items.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => false,
        };
        if was_set && spec.value[name] != before[name] {
            let detail = format!("node updates may not change {shown} except from \"\" to valid");
            errors.push(spec.member(name).forbidden(&detail));
        }
    }
    errors
}
