//! Specs of workloads. Members that are null are taken away by a patch.

use serde_json::{Value, json};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};

use super::examples::Example;
use super::people::CONFIGS;
use super::random::Random;
use super::surroundings::{ACCOUNT, GROUPS, POLICIES};

/// A member that names something, and what it can say.
type Reference = (&'static str, fn(&str) -> Value);

/// The members that only name an object, of both kinds of workload.
const REFERENCES: [Reference; 5] = [
    (MCPExternalAuthConfig::MEMBER, MCPExternalAuthConfig::reference),
    (MCPOIDCConfig::MEMBER, oidc),
    (MCPTelemetryConfig::MEMBER, MCPTelemetryConfig::reference),
    (MCPToolConfig::MEMBER, MCPToolConfig::reference),
    (AUTH_SERVER, |name| json!({"kind": "MCPExternalAuthConfig", "name": name})),
];
const AUTH_SERVER: &str = "authServerRef";
const GROUP: &str = "groupRef";

/// Goes with an authorization server of its own as well.
fn oidc(name: &str) -> Value {
    let resource = "https://mcp.example";
    json!({"name": name, "audience": resource, "resourceUrl": resource})
}

/// Names something else than before, or nothing.
pub(super) fn other_reference(random: &mut Random) -> Value {
    match random.below(REFERENCES.len() + 2) {
        0 => json!({GROUP: group(random)}),
        1 => policies(random),
        number => {
            let (member, reference) = REFERENCES[number - 2];
            json!({member: if random.once_in(3) { Value::Null } else { reference(random.pick(&CONFIGS)) }})
        }
    }
}

fn group(random: &mut Random) -> Value {
    if random.once_in(3) { json!({"name": random.pick(&GROUPS)}) } else { Value::Null }
}

/// Policies, which are given at one place only.
fn policies(random: &mut Random) -> Value {
    let inline = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]},
        "configMap": null});
    let (name, key) = POLICIES;
    let elsewhere = json!({"type": "configMap", "configMap": {"name": name, "key": key}, "inline": null});
    let (own, named) = match random.below(6) {
        0 => (inline, Value::Null),
        1 => (elsewhere, Value::Null),
        2 | 3 => (Value::Null, MCPAuthzConfig::reference(random.pick(&CONFIGS))),
        _ => (Value::Null, Value::Null),
    };
    json!({"authzConfig": own, MCPAuthzConfig::MEMBER: named})
}

/// What both kinds of workload have.
fn workload(random: &mut Random) -> Value {
    let overrides = json!({"proxyDeployment": {"labels": {"team": "a"}, "env": [{"name": "E", "value": "f"}]}});
    let mut spec = policies(random);
    spec[GROUP] = group(random);
    for (member, value) in
        [("resourceOverrides", overrides), ("serviceAccount", json!(ACCOUNT)), ("replicas", json!(2))]
    {
        spec[member] = if random.once_in(3) { value } else { Value::Null };
    }
    for (member, reference) in REFERENCES {
        let times = if member == AUTH_SERVER { 6 } else { 3 };
        spec[member] = if random.once_in(times) { reference(random.pick(&CONFIGS)) } else { Value::Null };
    }
    spec
}

pub(super) fn server(random: &mut Random) -> Value {
    let mut spec = workload(random);
    spec["image"] = json!(random.pick(&["i", "j"]));
    spec["transport"] = json!(random.pick(&["stdio", "sse", "streamable-http"]));
    spec[MCPWebhookConfig::MEMBER] =
        if random.once_in(3) { MCPWebhookConfig::reference(random.pick(&CONFIGS)) } else { Value::Null };
    spec["podTemplateSpec"] = match random.below(6) {
        0 => json!({"spec": {"containers": [{"name": "mcp", "env": [{"name": "A", "value": "b"}]}]}}),
        1 => json!({"spec": {"containers": "none"}}),
        _ => Value::Null,
    };
    spec
}

pub(super) fn proxy(random: &mut Random) -> Value {
    let mut spec = workload(random);
    spec["remoteUrl"] =
        json!(random.pick(&["https://mcp.example.com", "https://other.example.com", "http://10.0.0.1"]));
    spec
}

/// What makes a server that cannot be built one that can, when everything that it names is as it should be.
pub(super) fn healed_server() -> Value {
    json!({"podTemplateSpec": null, AUTH_SERVER: null})
}

/// The same for a proxy.
pub(super) fn healed_proxy() -> Value {
    json!({"remoteUrl": "https://mcp.example.com", AUTH_SERVER: null})
}
