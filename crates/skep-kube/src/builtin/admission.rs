//! What the admission plugins that are always on add to new pods and nodes.

use serde_json::{Value, json};

/// Where pods find the token of their service account.
const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour, and seven seconds by which such volumes are told from those of users.
const TOKEN_SECONDS: u32 = 3607;

/// The service account of pods that name none.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The name of a pod's service account.
pub fn service_account_of(pod: &Value) -> &str {
    pod["spec"]["serviceAccountName"].as_str().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_ACCOUNT)
}

/// Gives a new pod its service account: the name, the pull secrets, and the volume with the token, which is named with
/// the suffix (five random letters).
pub fn admit_service_account(pod: &mut Value, account: &Value, suffix: &str) {
    let name = service_account_of(pod).to_owned();
    // Mirror pods are only copies of what a node runs anyway.
    if !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return;
    }
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    spec["serviceAccountName"] = name.as_str().into();
    spec["serviceAccount"] = name.into();
    if spec["imagePullSecrets"].as_array().is_none_or(Vec::is_empty) && account["imagePullSecrets"].is_array() {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    let wanted = spec["automountServiceAccountToken"]
        .as_bool()
        .or_else(|| account["automountServiceAccountToken"].as_bool())
        .unwrap_or(true);
    if wanted {
        mount_token(spec, suffix);
    }
}

fn mount_token(spec: &mut Value, suffix: &str) {
    let existing = spec["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with("kube-api-access-"))
        .map(str::to_owned);
    let name = existing.clone().unwrap_or_else(|| format!("kube-api-access-{suffix}"));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != ACCOUNT_FOLDER) {
                mounts.push(json!({ "name": name, "readOnly": true, "mountPath": ACCOUNT_FOLDER }));
                mounted = true;
            }
        }
    }
    if mounted && existing.is_none() {
        push(spec, "volumes", token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                { "serviceAccountToken": { "path": "token", "expirationSeconds": TOKEN_SECONDS } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [{
                    "path": "namespace",
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
                }] } },
            ],
        },
    })
}

/// Lets a pod stay a while on a node that fails.
pub fn admit_pod(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = spec["tolerations"].as_array().into_iter().flatten().any(|toleration| {
            let same_key = toleration["key"] == key || toleration["key"].as_str().unwrap_or_default().is_empty();
            same_key && matches!(toleration["effect"].as_str(), Some("NoExecute" | "") | None)
        });
        if !tolerated {
            let toleration =
                json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
            push(spec, "tolerations", toleration);
        }
    }
}

/// A new node is not ready before something says so.
pub fn admit_node(node: &mut Value) {
    let Some(node) = node.as_object_mut() else { return };
    let spec = node.entry("spec").or_insert_with(|| json!({}));
    let key = "node.kubernetes.io/not-ready";
    let tainted = spec["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == key);
    if !tainted && spec.is_object() {
        push(spec, "taints", json!({ "key": key, "effect": "NoSchedule" }));
    }
}

fn push(object: &mut Value, name: &str, item: Value) {
    match object[name].as_array_mut() {
        Some(list) => list.push(item),
        None => object[name] = Value::Array(vec![item]),
    }
}
