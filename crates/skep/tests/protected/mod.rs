//! A server behind policies and callbacks, and what its clients can do.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::http::Request;

const CALLBACKS: &str = include_str!("callbacks.py");
const KEYS: &str = "callback-keys";
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

/// A script that serves https on port 8443 under its name, and a Secret with its keys.
pub(crate) fn python(name: &str, script: &str, secret: &str) -> Vec<Value> {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": "shell", "args": [format!("exec python3 /{name}/script/{name}.py")],
        "imagePullPolicy": "IfNotPresent",
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
        "volumeMounts": [{"name": "script", "mountPath": format!("/{name}/script")},
            {"name": "keys", "mountPath": format!("/{name}/keys")}]});
    let volumes =
        json!([{"name": "script", "configMap": {"name": name}}, {"name": "keys", "secret": {"secretName": secret}}]);
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": keys(name)}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {format!("{name}.py"): script}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": volumes}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "selector": labels, "ports": [{"port": 8443}]}}),
    ]
}

/// An authority, a certificate of it for each side, and the key of signatures.
fn keys(name: &str) -> BTreeMap<&'static str, ByteString> {
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
        ("hmac", "a key\n".to_owned()),
    ]
    .map(|(name, text)| (name, ByteString(text.into_bytes())))
    .into()
}

/// A client of a protected server.
pub(crate) struct Client<'a> {
    address: &'a str,
    session: String,
}

impl<'a> Client<'a> {
    /// Says the first word; there is a session when it was heard.
    pub(crate) fn begin(address: &'a str) -> Option<Self> {
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
        let response = Request::post(&message).send(address);
        let session = response.header("mcp-session-id").filter(|_| response.status == 200)?.to_owned();
        Some(Self { address, session })
    }

    /// The status and the answer.
    fn ask(&self, method: &str, params: &Value) -> (u16, Value) {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let request = Request::post(&message).header("MCP-Protocol-Version", "2025-06-18");
        let mut response = request.header("Mcp-Session-Id", &self.session).send(self.address);
        let status = response.status;
        (status, if response.is_stream() { response.message().unwrap() } else { response.json() })
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (u16, Value) {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Policies show and allow two tools; one callback changes what is echoed, and another one refuses a sum.
    pub(crate) fn check(&self) {
        let (status, listed) = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!((status, names), (200, vec!["add", "echo"]), "{listed}");
        let (status, sum) = self.call("add", &json!({"a": 2, "b": 3}));
        assert_eq!((status, &sum["result"]["structuredContent"]["sum"]), (200, &json!(5)), "{sum}");
        let (status, echo) = self.call("echo", &json!({"message": "as it was"}));
        assert_eq!((status, &echo["result"]["content"][0]["text"]), (200, &json!("changed on the way")), "{echo}");
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
