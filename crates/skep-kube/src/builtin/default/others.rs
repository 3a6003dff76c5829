//! The kinds with a few defaults each.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::pod::foreign_volume;
use super::{each, empty, fill, fill_zero, text, with};

const ACCESS_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn default(kind: &str, object: &mut Value) {
    match kind {
        "Namespace" => namespace(object),
        "Secret" => secret(object),
        "PersistentVolume" => persistent_volume(object),
        "Node" => node(object),
        "Endpoints" => each(object, "subsets", |subset| each(subset, "ports", protocol)),
        "EndpointSlice" => each(object, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        }),
        "NetworkPolicy" => network_policy(object),
        "IngressClass" => with(object, "spec", |spec| {
            with(spec, "parameters", |parameters| fill(parameters, "scope", "Cluster"));
        }),
        "RoleBinding" | "ClusterRoleBinding" => binding(object),
        "HorizontalPodAutoscaler" => with(object, "spec", autoscaler),
        "StorageClass" => {
            fill(object, "reclaimPolicy", "Delete");
            fill(object, "volumeBindingMode", "Immediate");
        }
        "PriorityClass" => fill(object, "preemptionPolicy", "PreemptLowerPriority"),
        "CustomResourceDefinition" => with(object, "spec", definition),
        _ => {}
    }
}

fn protocol(port: &mut Value) {
    fill_zero(port, "protocol", "TCP");
}

fn namespace(object: &mut Value) {
    fill(object, "status", empty());
    with(object, "status", |status| fill_zero(status, "phase", "Active"));
    // The label is not the user's to choose.
    let name = text(&object["metadata"], "name").to_owned();
    if name.is_empty() {
        return;
    }
    with(object, "metadata", |metadata| {
        fill(metadata, "labels", empty());
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.as_str().into());
        }
    });
}

/// `stringData` is for writing only: it goes into `data`, over what is there.
fn secret(object: &mut Value) {
    fill_zero(object, "type", "Opaque");
    let Some(members) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = members.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = members.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else { return };
    for (key, text) in texts {
        data.insert(key, STANDARD.encode(text.as_str().unwrap_or_default()).into());
    }
}

fn persistent_volume(object: &mut Value) {
    with(object, "status", |status| fill_zero(status, "phase", "Pending"));
    with(object, "spec", |spec| {
        fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
        with(spec, "hostPath", |source| fill(source, "type", ""));
        foreign_volume(spec);
    });
}

fn node(object: &mut Value) {
    let capacity = object["status"]["capacity"].clone();
    with(object, "status", |status| {
        if capacity.is_object() {
            fill(status, "allocatable", capacity.clone());
        }
    });
}

fn network_policy(object: &mut Value) {
    with(object, "spec", |spec| {
        for direction in ["ingress", "egress"] {
            each(spec, direction, |rule| each(rule, "ports", |port| fill(port, "protocol", "TCP")));
        }
        let has_egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
        let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
            spec["policyTypes"] = types;
        }
    });
}

fn binding(object: &mut Value) {
    with(object, "roleRef", |role| fill_zero(role, "apiGroup", ACCESS_GROUP));
    each(object, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_zero(subject, "apiGroup", ACCESS_GROUP);
        }
    });
}

fn autoscaler(spec: &mut Value) {
    fill(spec, "minReplicas", 1);
    let by_cpu = json!([{
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
    }]);
    fill(spec, "metrics", by_cpu);
    with(spec, "behavior", |behavior| {
        fill(behavior, "scaleUp", empty());
        with(behavior, "scaleUp", |rules| {
            fill(rules, "stabilizationWindowSeconds", 0);
            fill(rules, "selectPolicy", "Max");
            let policies = json!([
                { "type": "Pods", "value": 4, "periodSeconds": 15 },
                { "type": "Percent", "value": 100, "periodSeconds": 15 },
            ]);
            fill(rules, "policies", policies);
        });
        fill(behavior, "scaleDown", empty());
        with(behavior, "scaleDown", |rules| {
            fill(rules, "selectPolicy", "Max");
            fill(rules, "policies", json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]));
        });
    });
}

fn definition(spec: &mut Value) {
    with(spec, "names", |names| {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill_zero(names, "singular", kind.to_lowercase());
            fill_zero(names, "listKind", format!("{kind}List"));
        }
    });
    fill(spec, "conversion", json!({ "strategy": "None" }));
    with(spec, "conversion", |conversion| {
        with(conversion, "webhook", |webhook| {
            with(webhook, "clientConfig", |client| with(client, "service", |service| fill(service, "port", 443)));
        });
    });
}
