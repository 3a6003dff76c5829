//! Pods, and the templates of pods.

use serde_json::{Value, json};

use super::super::Quantity;
use super::{each, empty, fill, fill_zero, text, with};

/// Readable by all, writable by the owner.
const FILE_MODE: u32 = 0o644;

pub(super) fn pod(object: &mut Value) {
    with(object, "spec", |spec| {
        pod_spec(spec);
        fill(spec, "enableServiceLinks", true);
        if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
            spec["terminationGracePeriodSeconds"] = 1.into();
        }
        let host_network = spec["hostNetwork"] == true;
        for list in ["initContainers", "containers"] {
            each(spec, list, |container| {
                requests_from_limits(container);
                if host_network {
                    each(container, "ports", |port| {
                        let number = port["containerPort"].clone();
                        fill_zero(port, "hostPort", number);
                    });
                }
            });
        }
        requests_of_pod(spec);
    });
    with(object, "status", mirror_addresses);
}

/// `podIP` is the first of `podIPs`, and wins where they differ.
fn mirror_addresses(status: &mut Value) {
    let first = status["podIPs"][0]["ip"].as_str().unwrap_or_default().to_owned();
    let single = text(status, "podIP").to_owned();
    if single.is_empty() && !first.is_empty() {
        fill_zero(status, "podIP", first);
    } else if single != first
        && let Some(members) = status.as_object_mut()
    {
        members.insert("podIPs".to_owned(), json!([{ "ip": single }]));
    }
}

/// A pod with limits of its own asks for what its containers ask for together, or for all that it may have.
fn requests_of_pod(spec: &mut Value) {
    let limits = spec["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_shared_in_pods(name)) {
        let of_containers = spec["containers"].as_array().into_iter().flatten();
        let asked = of_containers.filter_map(|container| container["resources"]["requests"][&name].as_str());
        let sum = asked.filter_map(Quantity::parse).reduce(Quantity::plus);
        let request = sum.map_or(limit, |sum| sum.canonical().into());
        with(spec, "resources", |resources| {
            fill(resources, "requests", empty());
            with(resources, "requests", |requests| fill(requests, &name, request.clone()));
        });
    }
}

/// Whether a pod can have an amount of something for all of its containers together.
pub(in super::super) fn is_shared_in_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// A template does not get what only pods get, so that it stays as it was written.
pub(super) fn template(object: &mut Value) {
    with(object, "template", |template| with(template, "spec", pod_spec));
}

fn pod_spec(spec: &mut Value) {
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", empty());
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_zero(spec, "schedulerName", "default-scheduler");
    mirror_service_account(spec);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are kept equal.
fn mirror_service_account(spec: &mut Value) {
    let name = match (text(spec, "serviceAccountName"), text(spec, "serviceAccount")) {
        ("", old) => old.to_owned(),
        (name, _) => name.to_owned(),
    };
    if let (false, Some(members)) = (name.is_empty(), spec.as_object_mut()) {
        members.insert("serviceAccountName".to_owned(), name.as_str().into());
        members.insert("serviceAccount".to_owned(), name.into());
    }
}

fn container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    fill_zero(container, "imagePullPolicy", policy);
    fill_zero(container, "terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| fill_zero(port, "protocol", "TCP"));
    each(container, "env", |variable| with(variable, "valueFrom", |source| with(source, "fieldRef", field_reference)));
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        with(container, name, probe);
    }
    with(container, "lifecycle", |lifecycle| {
        for name in ["postStart", "preStop"] {
            with(lifecycle, name, |handler| with(handler, "httpGet", http_get));
        }
    });
}

/// Images that may change under the same name are always pulled.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, "latest")) => "Always",
        None if !digest && !image.is_empty() => "Always",
        _ => "IfNotPresent",
    }
}

fn probe(probe: &mut Value) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    with(probe, "httpGet", http_get);
    with(probe, "grpc", |grpc| fill(grpc, "service", ""));
}

fn http_get(action: &mut Value) {
    fill_zero(action, "path", "/");
    fill_zero(action, "scheme", "HTTP");
}

fn field_reference(reference: &mut Value) {
    fill_zero(reference, "apiVersion", "v1");
}

fn requests_from_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    with(container, "resources", |resources| {
        if limits.is_empty() {
            return;
        }
        fill(resources, "requests", empty());
        with(resources, "requests", |requests| {
            for (name, limit) in &limits {
                fill(requests, name, limit.clone());
            }
        });
    });
}

fn volume(volume: &mut Value) {
    let nothing =
        volume.as_object().is_some_and(|members| members.iter().all(|(name, value)| name == "name" || value.is_null()));
    if nothing {
        fill(volume, "emptyDir", empty());
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        with(volume, source, |source| fill(source, "defaultMode", FILE_MODE));
    }
    with(volume, "hostPath", |source| fill(source, "type", ""));
    with(volume, "downwardAPI", downward_items);
    with(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            with(source, "serviceAccountToken", |token| fill(token, "expirationSeconds", 3600));
            with(source, "downwardAPI", downward_items);
        });
    });
    with(volume, "ephemeral", |source| {
        with(source, "volumeClaimTemplate", |template| {
            with(template, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
        });
    });
    foreign_volume(volume);
}

fn downward_items(source: &mut Value) {
    each(source, "items", |item| with(item, "fieldRef", field_reference));
}

/// Storage that this server has no use for, but has to show as the real one does.
pub(super) fn foreign_volume(volume: &mut Value) {
    let known = json!({
        "iscsi": { "iscsiInterface": "default" },
        "rbd": { "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring" },
        "azureDisk": { "cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": false },
        "scaleIO": { "storageMode": "ThinProvisioned", "fsType": "xfs" },
    });
    for (source, members) in known.as_object().into_iter().flatten() {
        for (name, value) in members.as_object().into_iter().flatten() {
            with(volume, source, |source| fill_zero(source, name, value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_can_move_are_always_pulled() {
        for (image, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("busybox:1.36", "IfNotPresent"),
            ("registry.example:5000/busybox", "Always"),
            ("registry.example:5000/busybox:v1", "IfNotPresent"),
            ("busybox@sha256:00", "IfNotPresent"),
            ("busybox:latest@sha256:00", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
