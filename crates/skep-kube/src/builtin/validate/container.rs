//! Containers: names, images, ports, variables, mounts.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::place::{At, one_of, struct_text};
use super::ephemeral;
use super::pod::identifier;
use super::probe;
use super::profile::profiles;
use super::resources::resources;
use crate::names::{
    PORT_RANGE, config_map_key, dns1123_label, dns1123_subdomain, environment_variable_name, is_port_number, port_name,
};
use crate::status::{FieldError, Problem};

/// The volumes of a pod that are in order, by name.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn containers(spec: &At<'_>, volumes: &Volumes<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = spec.items("containers");
    if containers.is_empty() {
        errors.push(spec.member("containers").required(""));
    }
    let grace = spec.number("terminationGracePeriodSeconds").unwrap_or_default();
    let mut names = HashSet::new();
    for container in &containers {
        errors.extend(one(spec, container, volumes));
        errors.extend(probe::probes(container, grace));
        errors.extend(unique(container, &mut names));
    }
    errors.extend(host_ports(&containers));
    for container in &spec.items("initContainers") {
        errors.extend(init(container, grace));
        errors.extend(one(spec, container, volumes));
        errors.extend(unique(container, &mut names));
        // Containers that run to the end share the host's ports one after the other.
        errors.extend(host_ports(std::slice::from_ref(container)));
    }
    errors.extend(ephemeral::containers(spec, volumes, &mut names));
    errors
}

pub(super) fn unique<'a>(container: &At<'a>, names: &mut HashSet<&'a str>) -> Option<FieldError> {
    let name = container.member("name");
    (!name.own_text().is_empty() && !names.insert(name.own_text())).then(|| name.duplicate())
}

pub(super) fn one(spec: &At<'_>, container: &At<'_>, volumes: &Volumes<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = container.member("name");
    if name.own_text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.each(dns1123_label(name.own_text())));
    }
    let image = container.member("image");
    if image.own_text().is_empty() {
        errors.push(image.required(""));
    } else if image.own_text().trim() != image.own_text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
    errors.extend(one_of(&container.member("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]));
    errors.extend(one_of(&container.member("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]));
    errors.extend(ports(spec, container));
    for variable in container.items("env") {
        errors.extend(environment(&variable));
    }
    for source in container.items("envFrom") {
        errors.extend(environment_source(container, &source));
    }
    errors.extend(mounts(container, volumes));
    errors.extend(resources(&container.member("resources")));
    errors.extend(security(&container.member("securityContext")));
    errors
}

fn init(container: &At<'_>, grace: i64) -> Vec<FieldError> {
    let policy = container.member("restartPolicy");
    let mut errors = Vec::new();
    match policy.own_text() {
        "Always" => return probe::probes(container, grace),
        "" | "Never" | "OnFailure" => {}
        _ => errors.push(policy.unsupported(&["Always", "Never", "OnFailure"])),
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        let place = container.member(name);
        if place.is_set() {
            errors.push(place.forbidden("may not be set for init containers without restartPolicy=Always"));
        }
    }
    errors
}

fn ports(spec: &At<'_>, container: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for port in container.items("ports") {
        let name = port.member("name");
        if !name.own_text().is_empty() {
            let messages = port_name(name.own_text());
            if messages.is_empty() && !names.insert(name.own_text()) {
                errors.push(name.duplicate());
            }
            errors.extend(name.each(messages));
        }
        let number = port.member("containerPort");
        match number.value.as_i64() {
            None | Some(0) => errors.push(number.required("")),
            Some(found) if !is_port_number(found) => errors.push(number.invalid(PORT_RANGE)),
            Some(_) => {}
        }
        let host = port.member("hostPort");
        if let Some(found) = host.value.as_i64().filter(|found| *found != 0) {
            if !is_port_number(found) {
                errors.push(host.invalid(PORT_RANGE));
            } else if spec.flag("hostNetwork") && number.value.as_i64() != Some(found) {
                errors.push(host.invalid("must match `containerPort` when `hostNetwork` is true"));
            }
        }
        errors.extend(one_of(&port.member("protocol"), &["SCTP", "TCP", "UDP"]));
    }
    errors
}

fn host_ports(containers: &[At<'_>]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut taken = HashSet::new();
    for port in containers.iter().flat_map(|container| container.items("ports")) {
        let Some(number) = port.number("hostPort").filter(|number| *number != 0) else { continue };
        let slot = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
        if !taken.insert(slot.clone()) {
            errors.push(FieldError::duplicate(port.member("hostPort").path, slot));
        }
    }
    errors
}

fn environment(variable: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = variable.member("name");
    if name.own_text().is_empty() {
        errors.push(name.required(""));
    } else {
        errors.extend(name.each(environment_variable_name(name.own_text())));
    }
    let source = variable.member("valueFrom");
    if source.is_set() {
        errors.extend(variable_source(variable, &source));
    }
    errors
}

fn variable_source(variable: &At<'_>, source: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = kinds.into_iter().filter(|kind| source.has(kind)).count();
    errors.extend(
        source
            .has("fieldRef")
            .then(|| field_path(&source.member("fieldRef"), &VARIABLE_FIELDS, true))
            .into_iter()
            .flatten(),
    );
    let resource = source.deep("resourceFieldRef.resource");
    if source.has("resourceFieldRef") {
        if resource.own_text().is_empty() {
            errors.push(resource.required(""));
        } else if !RESOURCE_FIELDS.contains(&resource.own_text()) && !resource.own_text().contains("hugepages-") {
            errors.push(resource.unsupported(&RESOURCE_FIELDS));
        }
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let reference = source.member(kind);
        if reference.is_set() {
            let name = reference.member("name");
            errors.extend(name.each(dns1123_subdomain(name.own_text())));
            let key = reference.member("key");
            if key.own_text().is_empty() {
                errors.push(key.required(""));
            } else {
                errors.extend(key.each(config_map_key(key.own_text())));
            }
        }
    }
    if count == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(source.invalid_as("", detail));
    } else if !variable.text("value").is_empty() {
        errors.push(source.invalid_as("", "may not be specified when `value` is not empty"));
    } else if count > 1 {
        errors.push(source.invalid_as("", "may not have more than one field specified at a time"));
    }
    errors
}

/// A reference to a field of the pod itself.
pub(super) fn field_path(reference: &At<'_>, supported: &[&str], subscripts: bool) -> Vec<FieldError> {
    let path = reference.member("fieldPath");
    if reference.text("apiVersion").is_empty() {
        return vec![reference.member("apiVersion").required("")];
    }
    let text = path.own_text();
    if text.is_empty() {
        return vec![path.required("")];
    }
    if let Some((field, _)) = text.split_once('[') {
        let known = matches!(field, "metadata.labels" | "metadata.annotations");
        return if known && subscripts { Vec::new() } else { vec![path.invalid("does not support subscript")] };
    }
    let convertible = [
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    if supported.contains(&text) {
        Vec::new()
    } else if convertible.contains(&text) {
        vec![path.unsupported(supported)]
    } else {
        vec![path.invalid(&format!("error converting fieldPath: field label not supported: {text}"))]
    }
}

fn environment_source(container: &At<'_>, source: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = source.member("prefix");
    if !prefix.own_text().is_empty() {
        errors.extend(prefix.each(environment_variable_name(prefix.own_text())));
    }
    let kinds: Vec<At<'_>> =
        ["configMapRef", "secretRef"].map(|kind| source.member(kind)).into_iter().filter(At::is_set).collect();
    for reference in &kinds {
        let name = reference.member("name");
        if name.own_text().is_empty() {
            errors.push(name.required(""));
        } else {
            errors.extend(name.each(dns1123_subdomain(name.own_text())));
        }
    }
    // The real server names the list here, not the item.
    let list = container.member("envFrom");
    match kinds.len() {
        0 => errors.push(list.invalid_as("", "must specify one of: `configMapRef` or `secretRef`")),
        1 => {}
        _ => errors.push(list.invalid_as("", "may not have more than one field specified at a time")),
    }
    errors
}

fn mounts(container: &At<'_>, volumes: &Volumes<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut paths = HashSet::new();
    for mount in container.items("volumeMounts") {
        let name = mount.member("name");
        if name.own_text().is_empty() {
            errors.push(name.required(""));
        }
        if !volumes.contains_key(name.own_text()) {
            errors.push(FieldError::new(name.path.as_str(), Problem::NotFound(name.own_text().into()), ""));
        }
        let path = mount.member("mountPath");
        if path.own_text().is_empty() {
            errors.push(path.required(""));
        } else if !paths.insert(path.own_text()) {
            errors.push(path.invalid("must be unique"));
        }
        // Here too the real server leaves the index out.
        let list = container.member("volumeMounts");
        for part in ["subPath", "subPathExpr"] {
            if let Some(problem) = relative_path_problem(mount.text(part)) {
                errors.push(list.member(part).invalid_as(mount.text(part), problem));
            }
        }
        if !mount.text("subPath").is_empty() && !mount.text("subPathExpr").is_empty() {
            errors.push(mount.member("subPathExpr").invalid("subPathExpr and subPath are mutually exclusive"));
        }
    }
    errors
}

/// What is wrong with a path that must stay inside a volume.
pub(super) fn relative_path_problem(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        Some("must be a relative path")
    } else if path.split('/').any(|part| part == "..") {
        Some("must not contain '..'")
    } else {
        None
    }
}

fn security(context: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["runAsUser", "runAsGroup"] {
        errors.extend(identifier(&context.member(name)));
    }
    errors.extend(profiles(context));
    errors.extend(one_of(&context.member("procMount"), &["Default", "Unmasked"]));
    if context.value["allowPrivilegeEscalation"] == false {
        let mut refuse = |detail: &str| {
            errors.push(FieldError::new(
                context.path.as_str(),
                Problem::InvalidStruct(context_text(context.value)),
                detail,
            ));
        };
        if context.flag("privileged") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        let added = context.value["capabilities"]["add"].as_array();
        if added.is_some_and(|added| added.iter().any(|name| name == "CAP_SYS_ADMIN")) {
            refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    errors
}

/// A security context as the real server writes it in messages.
fn context_text(context: &Value) -> String {
    let text = |name: &str| context[name].to_string();
    let capabilities = &context["capabilities"];
    let capabilities = if capabilities.is_null() {
        "null".to_owned()
    } else {
        struct_text(&[("Add", capabilities["add"].to_string()), ("Drop", capabilities["drop"].to_string())])
    };
    struct_text(&[
        ("Capabilities", capabilities),
        ("Privileged", text("privileged")),
        ("SELinuxOptions", text("seLinuxOptions")),
        ("WindowsOptions", text("windowsOptions")),
        ("RunAsUser", text("runAsUser")),
        ("RunAsGroup", text("runAsGroup")),
        ("RunAsNonRoot", text("runAsNonRoot")),
        ("ReadOnlyRootFilesystem", text("readOnlyRootFilesystem")),
        ("AllowPrivilegeEscalation", text("allowPrivilegeEscalation")),
        ("ProcMount", text("procMount")),
        ("SeccompProfile", text("seccompProfile")),
        ("AppArmorProfile", text("appArmorProfile")),
    ])
}
