//! A server behind policies and callbacks, and what its clients can do.

mod client;

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

pub(crate) use self::client::{Begin, Client, first_word, listening};

const CALLBACKS: &str = include_str!("callbacks.py");
const KEYS: &str = "callback-keys";
/// The key of signatures in the beginning, and another one.
pub(crate) const KEY: &str = "a key";
pub(crate) const ANOTHER_KEY: &str = "another key";
/// What runs the callbacks.
pub(crate) const DEPLOYMENT: &str = "callbacks";

/// A protected server of that name: it has policies of its own, and callbacks.
pub(crate) fn spec(name: &str, transport: &str) -> Value {
    let call = r#"permit(principal, action == Action::"call_tool", resource"#;
    let policies = [
        format!(r#"{call} in MCP::"{name}") when {{ resource.name == "add" }};"#),
        format!(r#"{call} == Tool::"echo");"#),
    ];
    json!({"transport": transport, "authzConfig": {"type": "inline", "inline": {"policies": policies}},
        "webhookConfigRef": {"name": "callbacks"}})
}

/// The callbacks, and what they and the proxy know of each other.
pub(crate) fn callbacks() -> Vec<Value> {
    let secret = |key: &str| json!({"name": KEYS, "key": key});
    let hook = |name: &str| {
        json!([{"name": name, "url": format!("https://callbacks.default.svc.cluster.local:8443/{name}"), "timeout": "10s",
            "hmacSecretRef": secret("hmac"), "tlsConfig": {"caSecretRef": secret("ca.crt"),
                "clientCertSecretRef": secret("client.crt"), "clientKeySecretRef": secret("client.key")}}])
    };
    let hooks = json!({"apiVersion": "toolhive.stacklok.dev/v1alpha1", "kind": "MCPWebhookConfig",
        "metadata": {"name": DEPLOYMENT}, "spec": {"mutating": hook("change"), "validating": hook("refuse")}});
    python(DEPLOYMENT, CALLBACKS, KEYS).into_iter().chain([hooks]).collect()
}

/// The Secret of the callbacks with everything new in it: another authority, other certificates and [`ANOTHER_KEY`].
pub(crate) fn rotated() -> Value {
    let mut keys = keys(DEPLOYMENT);
    keys.insert("hmac", ByteString(format!("{ANOTHER_KEY}\n").into_bytes()));
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEYS}, "data": keys})
}

/// What is echoed behind callbacks that know the proxy by this key.
pub(crate) fn signed_with(key: &str) -> String {
    format!("signed with {key}")
}

/// A script in Python that serves https on port 8443 under its name, and a Secret with its keys.
pub(crate) fn python(name: &str, script: &str, secret: &str) -> Vec<Value> {
    let file = format!("{name}.py");
    let command = format!("exec python3 /{name}/script/{file}");
    let secret = Secret { name: secret, keys: keys(name) };
    program(name, &command, (&file, script), &secret, None)
}

/// A Secret to come.
pub(crate) struct Secret<'a> {
    pub(crate) name: &'a str,
    pub(crate) keys: BTreeMap<&'static str, ByteString>,
}

/// A command that serves https on port 8443 under its name, and plain http for this machine on port 8080 if it likes. Its
/// script, its keys and a folder of the machine are below `/NAME`: `script`, `keys` and `packages`.
pub(crate) fn program(
    name: &str,
    command: &str,
    (file, script): (&str, &str),
    secret: &Secret<'_>,
    packages: Option<&Path>,
) -> Vec<Value> {
    let labels = json!({"app": name});
    let host = packages.map(|folder| ("packages", json!({"name": "packages", "hostPath": {"path": folder}})));
    let volumes = [
        ("script", json!({"name": "script", "configMap": {"name": name}})),
        ("keys", json!({"name": "keys", "secret": {"secretName": secret.name}})),
    ];
    let volumes: Vec<(&str, Value)> = volumes.into_iter().chain(host).collect();
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|(volume, _)| json!({"name": volume, "mountPath": format!("/{name}/{volume}"), "readOnly": true}))
        .collect();
    let volumes: Vec<Value> = volumes.into_iter().map(|(_, volume)| volume).collect();
    let container = json!({"name": "main", "image": "shell", "args": [command], "imagePullPolicy": "IfNotPresent",
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1}, "volumeMounts": mounts});
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret.name}, "data": secret.keys}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {file: script}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": volumes}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "selector": labels, "ports": [{"port": 8443}]}}),
    ]
}

/// An authority, a certificate of it for each side, and the key of signatures.
pub(crate) fn keys(name: &str) -> BTreeMap<&'static str, ByteString> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "the authority of a test");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let vouch = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
    };
    let (server, client) = (vouch(&format!("{name}.default.svc.cluster.local")), vouch("proxy"));
    [
        ("ca.crt", authority.pem()),
        ("server.crt", server.0),
        ("server.key", server.1),
        ("client.crt", client.0),
        ("client.key", client.1),
        ("hmac", format!("{KEY}\n")),
    ]
    .map(|(name, text)| (name, ByteString(text.into_bytes())))
    .into()
}
