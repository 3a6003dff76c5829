//! The config kinds: validity, hashes, users, protected deletion, and who writes what.

mod deletion;
mod events;
mod objects;
mod users;
mod verdicts;
mod writes;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use skep_api::conditions::{self, Condition, types};
use skep_api::kind::Kind as _;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_operator::config::ConfigKind;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, Kind};
use crate::wire::{Faults, Record};

pub fn trials(kind: Kind) -> Vec<Trial> {
    let all = [
        deletion::trials(kind),
        events::trials(kind),
        users::trials(kind),
        verdicts::trials(kind),
        writes::trials(kind),
    ];
    all.into_iter().flatten().collect()
}

/// The controllers of the config kinds and no other, one object at a time: what was asked for first is done first.
fn settings() -> Settings {
    let controllers = [
        MCPAuthzConfig::DEFINITION.kind,
        MCPExternalAuthConfig::DEFINITION.kind,
        MCPOIDCConfig::DEFINITION.kind,
        MCPTelemetryConfig::DEFINITION.kind,
        MCPToolConfig::DEFINITION.kind,
        MCPWebhookConfig::DEFINITION.kind,
    ];
    Settings { controllers: controllers.into(), concurrency: 1, ..Settings::default() }
}

async fn start(fixture: &Fixture) -> (Operator, Record) {
    fixture.operator_with(settings(), Faults::none()).await
}

/// What a test needs to know of a kind.
pub trait Example: ConfigKind {
    /// A valid spec; every number gives another one.
    fn good(number: usize) -> Value;
    /// A spec that admission accepts and the controller does not, if there is one.
    fn bad() -> Option<Value>;
    /// The member of an MCPServer's spec that names the object.
    const MEMBER: &'static str;
    /// What else that member needs.
    fn reference(name: &str) -> Value {
        json!({"name": name})
    }
}

impl Example for MCPOIDCConfig {
    const MEMBER: &'static str = "oidcConfigRef";

    fn good(number: usize) -> Value {
        json!({"type": "inline", "inline": {"issuer": format!("https://issuer-{number}.example")}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "inline", "inline": {"issuer": "ftp://100%.example"}}))
    }

    fn reference(name: &str) -> Value {
        json!({"name": name, "audience": "a"})
    }
}

impl Example for MCPExternalAuthConfig {
    const MEMBER: &'static str = "externalAuthConfigRef";

    fn good(number: usize) -> Value {
        let secret = json!({"name": format!("secret-{number}"), "key": "k"});
        json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": secret}, "obo": null})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "obo", "obo": {}, "bearerToken": null}))
    }
}

impl Example for MCPAuthzConfig {
    const MEMBER: &'static str = "authzConfigRef";

    fn good(number: usize) -> Value {
        let policy = format!("permit(principal == Client::\"{number}\", action, resource);");
        json!({"type": "cedarv1", "config": {"policies": [policy]}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"type": "opa", "config": {"policies": []}}))
    }
}

impl Example for MCPToolConfig {
    const MEMBER: &'static str = "toolConfigRef";

    fn good(number: usize) -> Value {
        json!({"toolsFilter": [format!("tool-{number}")]})
    }

    fn bad() -> Option<Value> {
        None
    }
}

impl Example for MCPTelemetryConfig {
    const MEMBER: &'static str = "telemetryConfigRef";

    fn good(number: usize) -> Value {
        json!({"openTelemetry": {"endpoint": format!("collector-{number}:4318"), "tracing": {"enabled": true}}})
    }

    fn bad() -> Option<Value> {
        Some(json!({"openTelemetry": {"endpoint": "collector:4318", "tracing": {"enabled": false}}}))
    }
}

impl Example for MCPWebhookConfig {
    const MEMBER: &'static str = "webhookConfigRef";

    fn good(number: usize) -> Value {
        json!({"validating": [{"name": "w", "url": format!("https://hook-{number}.example")}]})
    }

    fn bad() -> Option<Value> {
        Some(json!({"validating": [{"name": "w", "url": "http://hook.example"}]}))
    }
}

/// Runs a test for each of the six kinds, one after the other.
macro_rules! for_every_kind {
    ($test:ident, $fixture:expr) => {{
        $test::<MCPAuthzConfig>($fixture).await;
        $test::<MCPExternalAuthConfig>($fixture).await;
        $test::<MCPOIDCConfig>($fixture).await;
        $test::<MCPTelemetryConfig>($fixture).await;
        $test::<MCPToolConfig>($fixture).await;
        $test::<MCPWebhookConfig>($fixture).await;
    }};
}
pub(crate) use for_every_kind;

/// An MCPServer that names an object.
fn server_of<K: Example>(name: &str) -> Value {
    json!({"image": "i", K::MEMBER: K::reference(name)})
}

pub fn condition<K: ConfigKind>(object: &K, type_: &str) -> Option<Condition> {
    conditions::find(&object.status()?.conditions, type_).cloned()
}

pub fn is_valid<K: ConfigKind>(object: &K) -> bool {
    object.status().is_some_and(|status| {
        let judged = conditions::find(&status.conditions, types::VALID);
        conditions::is_true(&status.conditions, types::VALID)
            && judged.and_then(|condition| condition.observed_generation) == object.meta().generation
    })
}

pub fn is_blocked<K: ConfigKind>(object: &K) -> bool {
    object.status().is_some_and(|status| conditions::is_true(&status.conditions, types::DELETION_BLOCKED))
}

/// The users of an object as `Kind/name`.
fn users<K: ConfigKind>(object: &K) -> Vec<String> {
    let users = object.status().map(|status| status.referencing_workloads.as_slice()).unwrap_or_default();
    users.iter().map(|user| format!("{:?}/{}", user.kind, user.name)).collect()
}

fn is_used_by<K: ConfigKind>(expected: &[&str]) -> impl Fn(&K) -> bool {
    move |object| {
        let count = object.status().and_then(|status| status.reference_count);
        users(object) == expected && count == i32::try_from(expected.len()).ok()
    }
}

/// Waits until everything of a kind that was asked for before this has been done: objects of a kind are looked at one
/// after the other, and this one is looked at last.
async fn caught_up<K: Example>(fixture: &Fixture, marker: &str) {
    fixture.create::<K>(marker, K::good(0)).await;
    fixture.until::<K>(marker, "valid", is_valid).await;
    fixture.delete::<K>(marker).await;
    fixture.until_gone::<K>(marker).await;
}
