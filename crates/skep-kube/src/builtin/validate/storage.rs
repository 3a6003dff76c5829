//! Volumes of the cluster, what is claimed of them, and their classes.

use serde_json::Value;

use super::super::Quantity;
use super::super::place::{At, one_of};
use super::affinity::node_selector;
use super::volume::{host_path, nfs, only_one};
use crate::names::{dns1123_subdomain, qualified_name};
use crate::status::{FieldError, Problem};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const PARAMETER_BYTES: usize = 256 * 1024;
/// What a volume can be, as far as it is looked at here.
const SOURCES: [&str; 4] = ["hostPath", "nfs", "local", "csi"];
/// Members of a volume that are not what it is.
pub(super) const USAGE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// The spec of a claim, by itself or in a template.
pub(super) fn claim(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if spec.has("selector") {
        errors.extend(spec.member("selector").selector());
    }
    if spec.items("accessModes").is_empty() {
        errors.push(spec.member("accessModes").required("at least 1 access mode is required"));
    }
    errors.extend(access_modes(spec));
    let resources = spec.member("resources");
    let storage = &resources.value["requests"]["storage"];
    match storage.as_str().and_then(Quantity::parse) {
        None => errors.push(FieldError::required(resources.key("storage"), "")),
        Some(size) => errors.extend(positive(resources.key("storage"), storage, size)),
    }
    errors.extend(class_and_mode(spec));
    for name in ["dataSource", "dataSourceRef"] {
        errors.extend(data_source(&spec.member(name)));
    }
    errors
}

fn data_source(source: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !source.is_set() {
        return errors;
    }
    for name in ["name", "kind"] {
        if source.text(name).is_empty() {
            errors.push(source.member(name).required(""));
        }
    }
    let (group, kind) = (source.text("apiGroup"), source.text("kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        errors.push(source.invalid_as(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
    }
    errors
}

fn access_modes(spec: &At<'_>) -> Vec<FieldError> {
    let list = spec.member("accessModes");
    let modes = spec.items("accessModes");
    // The real server names the list and not the item.
    let place = |mode: &At<'_>| one_of(&At { path: list.path.clone(), value: mode.value }, &MODES);
    let mut errors: Vec<FieldError> = modes.iter().filter_map(place).collect();
    if modes.len() > 1 && modes.iter().any(|mode| mode.own_text() == "ReadWriteOncePod") {
        errors.push(list.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    errors
}

fn positive(path: String, shown: &Value, size: Quantity) -> Option<FieldError> {
    (size.is_negative() || size.is_zero())
        .then(|| FieldError::invalid(path, shown.clone(), "must be greater than zero"))
}

fn class_and_mode(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let class = spec.member("storageClassName");
    if !class.own_text().is_empty() {
        errors.extend(class.each(dns1123_subdomain(class.own_text())));
    }
    errors.extend(one_of(&spec.member("volumeMode"), &["Block", "Filesystem"]));
    errors
}

pub(super) fn volume(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    if spec.items("accessModes").is_empty() {
        errors.push(spec.member("accessModes").required(""));
    }
    errors.extend(access_modes(&spec));
    errors.extend(capacity(&spec));
    let policy = spec.member("persistentVolumeReclaimPolicy");
    errors.extend(one_of(&policy, &["Delete", "Recycle", "Retain"]));
    let constraints = spec.member("nodeAffinity");
    if constraints.is_set() {
        let required = constraints.member("required");
        if required.is_set() {
            errors.extend(node_selector(&required));
        } else {
            errors.push(required.required("must specify required node constraints"));
        }
    }
    errors.extend(source(&spec));
    if spec.deep("hostPath.path").own_text() == "/" && policy.own_text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    errors.extend(class_and_mode(&spec));
    errors
}

fn capacity(spec: &At<'_>) -> Vec<FieldError> {
    let capacity = spec.member("capacity");
    let mut errors = Vec::new();
    let amounts: Vec<(&str, &Value)> = spec.entries("capacity").collect();
    if amounts.is_empty() {
        errors.push(capacity.required(""));
    }
    if amounts.len() != 1 || amounts[0].0 != "storage" {
        let text = if amounts.is_empty() { "null".to_owned() } else { capacity.value.to_string() };
        let detail = "supported values: \"storage\"";
        errors.push(FieldError::new(capacity.path.as_str(), Problem::NotSupportedStruct(text), detail));
    }
    for (name, amount) in amounts {
        let size = amount.as_str().and_then(Quantity::parse);
        errors.extend(size.filter(|_| name == "storage").and_then(|size| positive(capacity.key(name), amount, size)));
    }
    errors
}

fn source(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = only_one(spec, &SOURCES, |kind, source| match kind {
        "hostPath" => host_path(source).into_iter().collect(),
        "nfs" => nfs(source),
        "local" => local(spec, source),
        _ => {
            let missing = ["driver", "volumeHandle"].into_iter().filter(|name| source.text(name).is_empty());
            missing.map(|name| source.member(name).required("")).collect()
        }
    });
    let is_source = |name: &String| !USAGE.contains(&name.as_str());
    let mut others =
        spec.value.as_object().into_iter().flatten().filter(|(name, value)| is_source(name) && value.is_object());
    if others.next().is_none() {
        errors.push(spec.required("must specify a volume type"));
    }
    errors
}

fn local(spec: &At<'_>, source: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if source.text("path").is_empty() {
        errors.push(source.member("path").required(""));
    }
    if !spec.has("nodeAffinity") {
        errors.push(spec.member("nodeAffinity").required("Local volume requires node affinity"));
    }
    errors
}

pub(super) fn class(root: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let provisioner = root.member("provisioner");
    if provisioner.own_text().is_empty() {
        errors.push(provisioner.required(""));
    } else {
        // Large letters are as good as small ones.
        let problems = qualified_name(&provisioner.own_text().to_lowercase());
        errors.extend(problems.iter().map(|problem| provisioner.invalid(problem)));
    }
    let parameters = root.member("parameters");
    let mut bytes = 0;
    for (name, value) in root.entries("parameters") {
        if name.is_empty() {
            errors.push(parameters.invalid_as("", "field can not be empty."));
        }
        bytes += name.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > PARAMETER_BYTES {
        errors.push(FieldError::too_long("parameters", PARAMETER_BYTES));
    }
    errors.extend(one_of(&root.member("reclaimPolicy"), &["Delete", "Retain"]));
    errors.extend(one_of(&root.member("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"]));
    errors
}
