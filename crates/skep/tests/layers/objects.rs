//! The manifests: what everybody needs, and one workload for each thing that is checked.

use std::path::Path;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::TOOL_LIMIT;
use crate::outgoing::{ENDPOINTS_URL, aside, credentials, endpoints, own_server, remote_proxy};
use crate::place::object;
use crate::protected::{self, Secret, callbacks, program};
use crate::provider::{AUDIENCE, CLIENT_SECRET, NODE, SCRIPT};

/// What the provider calls itself.
pub(super) const ISSUER: &str = "https://provider.default.svc.cluster.local:8443";
/// What only the servers that it is for are shown.
pub(super) const TOKEN: &str = "a token of ours";
pub(super) const KEY: &str = "a key of ours";
/// What is told of a tool instead of what its server says.
pub(super) const DESCRIPTION: &str = "What the server was shown";
const OWN: &str = "own";
const PASSWORD: &str = "a password";

/// Whatever workloads name, and what answers the proxies' questions.
pub(super) fn needed(packages: &Path) -> Vec<Value> {
    let mut needed = callbacks();
    let (provider, endpoints) = (provider(packages), endpoints());
    let trusted = authority(&provider) + &authority(&endpoints);
    needed.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authorities"},
        "data": {"ca.crt": trusted}}));
    needed.extend(provider.into_iter().chain(endpoints));
    needed.extend(redis());
    let kept = [("token", TOKEN), ("key", KEY), ("secret", CLIENT_SECRET), ("password", PASSWORD)];
    let kept: serde_json::Map<String, Value> =
        kept.into_iter().map(|(key, value)| (key.to_owned(), json!(ByteString(value.into())))).collect();
    needed.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": OWN}, "data": kept}));
    let login = json!({"type": "inline", "inline": {"issuer": ISSUER, "introspectionUrl": format!("{ISSUER}/token/introspection"),
        "clientId": "bee", "clientSecretRef": own("secret"), "jwksAllowPrivateIP": true,
        "caBundleRef": {"configMapRef": {"name": "authorities", "key": "ca.crt"}}}});
    let accounts = json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": {}});
    let tools = json!({"toolsFilter": ["add", "say"], "toolsOverride":
        {"echo": {"name": "say", "annotations": {"title": "Say it"}}}});
    let headers = json!({"toolsFilter": ["headers", "burn"], "toolsOverride":
        {"headers": {"name": "headers", "description": DESCRIPTION}}});
    let page = json!({"prometheus": {"enabled": true}});
    let decisions = json!({"type": "httpv1", "config": {"claim_mapping": "standard", "http": {"url": ENDPOINTS_URL}}});
    let fixed = json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": own("token")}});
    needed.extend([
        object("MCPOIDCConfig", "login", &login),
        object("MCPOIDCConfig", "accounts", &accounts),
        object("MCPToolConfig", "tools", &tools),
        object("MCPToolConfig", "headers", &headers),
        object("MCPTelemetryConfig", "page", &page),
        object("MCPAuthzConfig", "decisions", &decisions),
        object("MCPExternalAuthConfig", "fixed", &fixed),
    ]);
    needed.extend(credentials().map(|(_, config)| config));
    needed.push(aside());
    needed
}

fn own(key: &str) -> Value {
    json!({"name": OWN, "key": key})
}

/// The authority that a program has its certificates from, by its Secret.
fn authority(program: &[Value]) -> String {
    let secret = program.iter().find(|object| object["kind"] == "Secret").unwrap();
    let text: ByteString = serde_json::from_value(secret["data"]["ca.crt"].clone()).unwrap();
    String::from_utf8(text.0).unwrap()
}

/// The provider, by https for proxies and without for the test.
fn provider(packages: &Path) -> Vec<Value> {
    let secret = Secret { name: "provider-keys", keys: protected::keys("provider") };
    let command = format!(
        "cd /provider/packages && HOST=0.0.0.0 PORT=8080 ISSUER={ISSUER} KEYS=/provider/keys \
         exec {NODE} --input-type=module --eval \"$(cat /provider/script/provider.mjs)\""
    );
    program("provider", &command, ("provider.mjs", SCRIPT), &secret, Some(packages))
}

/// A real Redis, which wants a password.
fn redis() -> [Value; 2] {
    let labels = json!({"app": "redis"});
    let command = "exec redis-server --bind 0.0.0.0 --port 6379 --dir /tmp --save '' --requirepass \"$PASSWORD\"";
    let container = json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [command],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": own("password")}}],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1}});
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "redis"}, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "redis"}, "spec": {
            "selector": labels, "ports": [{"port": 6379}]}}),
    ]
}

fn login() -> Value {
    json!({"name": "login", "audience": AUDIENCE, "resourceUrl": AUDIENCE, "scopes": ["mcp"]})
}

/// What keepers may, as their tokens say who they are.
fn policies() -> Value {
    let may = |tool: &str| {
        format!(
            r#"permit(principal in THVGroup::"keepers", action == Action::"call_tool", resource == Tool::"{tool}");"#
        )
    };
    json!({"type": "inline", "inline": {"policies": [may("add"), may("echo")]}})
}

fn sessions() -> Value {
    json!({"provider": "redis", "address": "redis.default.svc.cluster.local:6379", "passwordRef": own("password")})
}

/// Calls that a bucket is good for. It does not fill while a test runs.
fn bucket(calls: usize) -> Value {
    json!({"maxTokens": calls, "refillPeriod": "24h"})
}

/// Somebody's calls, or everybody's together, of all tools and of one that is good for a single call.
fn limits(whose: &str) -> Value {
    json!({whose: bucket(TOOL_LIMIT), "tools": [{"name": "echo", whose: bucket(1)}]})
}

fn server(name: &str, mut spec: Value) -> Value {
    spec["image"] = json!("skep-demo/echo");
    spec["proxyPort"] = json!(8080);
    object("MCPServer", name, &spec)
}

/// Callers have to prove who they are, and may do what their tokens say.
pub(super) fn proved() -> Value {
    server("proved", json!({"transport": "stdio", "oidcConfigRef": login(), "authzConfig": policies()}))
}

/// Anybody may call; tools are shown in another way, counted, recorded and told about.
pub(super) fn watched() -> Value {
    let spec = json!({"transport": "streamable-http", "toolConfigRef": {"name": "tools"}, "audit": {"enabled": true},
        "telemetryConfigRef": {"name": "page"}, "rateLimiting": limits("shared"), "sessionStorage": sessions()});
    server("watched", spec)
}

/// All of it, and callbacks, before a server of this transport.
pub(super) fn everything(name: &str, transport: &str) -> Value {
    let spec = json!({"transport": transport, "oidcConfigRef": login(), "authzConfig": policies(),
        "toolConfigRef": {"name": "tools"}, "audit": {"enabled": true}, "telemetryConfigRef": {"name": "page"},
        "webhookConfigRef": {"name": protected::DEPLOYMENT}, "rateLimiting": limits("perUser"),
        "sessionStorage": sessions()});
    server(name, spec)
}

/// Callers are service accounts, and one of them may do something.
pub(super) fn accounts() -> Value {
    let may = r#"permit(principal == Client::"system:serviceaccount:default:bee", action == Action::"call_tool",
        resource == Tool::"add");"#;
    let spec = json!({"transport": "stdio", "oidcConfigRef": {"name": "accounts", "audience": AUDIENCE},
        "authzConfig": {"type": "inline", "inline": {"policies": [may]}}, "audit": {"enabled": true}});
    server("accounts", spec)
}

/// A server of somebody else that speaks this transport, and gets credentials of this kind for each caller and headers of
/// ours. A decision point is asked.
pub(super) fn elsewhere(name: &str, credential: &str, transport: &str) -> Value {
    let headers = json!({"addPlaintextHeaders": {"X-Tenant": "blue"},
        "addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": own("key")}]});
    let mut spec = asking(credential, transport);
    spec["headerForward"] = headers;
    remote_proxy(name, spec)
}

/// What servers have in common that get credentials of this kind for each caller, and before which a decision point is asked.
fn asking(credential: &str, transport: &str) -> Value {
    json!({"transport": transport, "oidcConfigRef": login(), "authzConfigRef": {"name": "decisions"},
        "externalAuthConfigRef": {"name": credential}, "toolConfigRef": {"name": "headers"},
        "audit": {"enabled": true}, "telemetryConfigRef": {"name": "page"}})
}

/// A server of ours that gets the same, and everything else.
pub(super) fn ours(name: &str, credential: &str, transport: &str) -> Value {
    let mut spec = asking(credential, transport);
    spec["webhookConfigRef"] = json!({"name": protected::DEPLOYMENT});
    spec["rateLimiting"] = json!({"tools": [{"name": "burn", "perUser": bucket(TOOL_LIMIT)}]});
    spec["sessionStorage"] = sessions();
    own_server(name, "/config/certs/authorities/ca.crt", spec)
}

/// One that gets the same token for everybody.
pub(super) fn fixed() -> Value {
    remote_proxy("fixed", json!({"externalAuthConfigRef": {"name": "fixed"}}))
}
