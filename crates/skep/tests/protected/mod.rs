//! A server behind policies and callbacks, and what its clients can do.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::http::{Request, Response};

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

/// A client of a protected server.
pub(crate) struct Client<'a> {
    address: &'a str,
    token: Option<&'a str>,
    session: String,
}

impl<'a> Client<'a> {
    /// Says the first word; there is a session when it was heard.
    pub(crate) fn begin(address: &'a str) -> Option<Self> {
        Self::begin_as(address, None)
    }

    /// The same for somebody who has a token.
    pub(crate) fn begin_as(address: &'a str, token: Option<&'a str>) -> Option<Self> {
        let response = first_word(token).send(address);
        let session = response.header("mcp-session-id").filter(|_| response.status == 200)?.to_owned();
        Some(Self { address, token, session })
    }

    /// The answer to a request as it comes.
    pub(crate) fn send(&self, method: &str, params: &Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let request = bearing(Request::post(&message), self.token).header("MCP-Protocol-Version", "2025-06-18");
        request.header("Mcp-Session-Id", &self.session).send(self.address)
    }

    /// The status and the answer.
    fn ask(&self, method: &str, params: &Value) -> (u16, Value) {
        let mut response = self.send(method, params);
        let status = response.status;
        (status, if response.is_stream() { response.message().unwrap() } else { response.json() })
    }

    /// The tools that are shown, as they are.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let (status, listed) = self.ask("tools/list", &json!({}));
        assert_eq!(status, 200, "{listed}");
        listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed}")).clone()
    }

    /// The names of the tools that are shown, in their order in the alphabet.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.listed();
        let mut names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (u16, Value) {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Whether callbacks know the proxy by this key.
    pub(crate) fn is_signed_with(&self, key: &str) -> Result<(), String> {
        let (status, echo) = self.call("echo", &json!({"message": "as it was"}));
        let is_known = status == 200 && echo["result"]["content"][0]["text"] == signed_with(key);
        if is_known { Ok(()) } else { Err(format!("{status}: {echo}")) }
    }

    /// Policies show and allow two tools; one callback changes what is echoed, and another one refuses a sum.
    pub(crate) fn check(&self, key: &str) {
        assert_eq!(self.tools(), ["add", "echo"]);
        let (status, sum) = self.call("add", &json!({"a": 2, "b": 3}));
        assert_eq!((status, &sum["result"]["structuredContent"]["sum"]), (200, &json!(5)), "{sum}");
        assert_eq!(self.is_signed_with(key), Ok(()));
        for (tool, arguments, told) in [
            ("sampling", json!({"prompt": "?"}), "Unauthorized"),
            ("add", json!({"a": 13, "b": 3}), "Request denied by policy"),
        ] {
            let (status, refused) = self.call(tool, &arguments);
            let error = json!({"code": 403, "message": told});
            assert_eq!((status, &refused["error"], &refused["id"]), (403, &error, &json!(2)), "{tool}: {refused}");
        }
    }
}

/// The first word of a client.
pub(crate) fn first_word(token: Option<&str>) -> Request {
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    bearing(Request::post(&message), token)
}

fn bearing(request: Request, token: Option<&str>) -> Request {
    token.into_iter().fold(request, |request, token| request.header("Authorization", &format!("Bearer {token}")))
}
