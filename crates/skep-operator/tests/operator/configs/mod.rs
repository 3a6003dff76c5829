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
pub use skep_conformance::changes::Example;
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

/// A config kind with examples.
pub trait ConfigExample: ConfigKind + Example {}

impl<K: ConfigKind + Example> ConfigExample for K {}

/// An MCPServer that names an object.
fn server_of<K: ConfigExample>(name: &str) -> Value {
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
async fn caught_up<K: ConfigExample>(fixture: &Fixture, marker: &str) {
    fixture.create::<K>(marker, K::good(0)).await;
    fixture.until::<K>(marker, "valid", is_valid).await;
    fixture.delete::<K>(marker).await;
    fixture.until_gone::<K>(marker).await;
}
