//! Events: one for each change, readable in both APIs.

use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use skep_api::conditions::{ConditionStatus, types};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_conformance::changes::for_every_kind;

use super::{ConfigExample, caught_up, condition, is_blocked, is_valid, server_of, start};
use crate::cluster::Fixture;
use crate::trials;

trials![each_change_is_told_once];

/// Reason, type, action and words of every event about an object, sorted by reason.
async fn told<K: ConfigExample>(fixture: &Fixture, name: &str) -> Vec<(String, String, String, String)> {
    let api: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let events = api.list(&ListParams::default()).await.unwrap().items.into_iter().filter(|event| {
        let about = event.regarding.clone().unwrap_or_default();
        about.kind.as_deref() == Some(K::DEFINITION.kind) && about.name.as_deref() == Some(name)
    });
    let mut told: Vec<_> = events
        .map(|event| {
            assert!(event.series.is_none(), "told once: {event:?}");
            let text = |text: Option<String>| text.unwrap_or_default();
            (text(event.reason), text(event.type_), text(event.action), text(event.note))
        })
        .collect();
    told.sort();
    told
}

async fn each_change_is_told_once(fixture: Fixture) {
    async fn change<K: ConfigExample>(fixture: &Fixture) {
        fixture.create::<K>("c", K::good(1)).await;
        fixture.until::<K>("c", "valid", is_valid).await;
        let mut expected = Vec::new();
        if let Some(bad) = K::bad() {
            let is_bad = |object: &K| {
                condition(object, types::VALID).is_some_and(|valid| valid.status == ConditionStatus::False)
            };
            fixture.merge::<K>("c", json!({"spec": bad})).await;
            let object = fixture.until::<K>("c", "invalid", is_bad).await;
            let note = format!("spec validation failed: {}", object.validate().unwrap_err());
            expected.push(("ConfigInvalid".to_owned(), "Warning".to_owned(), "Validate".to_owned(), note));
            for pass in 0..3 {
                fixture.merge::<K>("c", json!({"metadata": {"annotations": {"looked-at": pass.to_string()}}})).await;
            }
            // The same spec as before: nothing but the verdict is new.
            fixture.merge::<K>("c", json!({"spec": K::good(1)})).await;
            fixture.until::<K>("c", "valid again", is_valid).await;
            let passed = ("ConfigValid", "Normal", "Validate", "spec validation passed");
            expected.push((passed.0.to_owned(), passed.1.to_owned(), passed.2.to_owned(), passed.3.to_owned()));
        }
        let server = format!("{}-user", K::DEFINITION.singular());
        fixture.create::<MCPServer>(&server, server_of::<K>("c")).await;
        fixture.until::<K>("c", "used", super::is_used_by(&[&format!("MCPServer/{server}")])).await;
        fixture.delete::<K>("c").await;
        fixture.until::<K>("c", "kept", is_blocked).await;
        for pass in 0..3 {
            fixture.merge::<K>("c", json!({"metadata": {"annotations": {"looked-at": pass.to_string()}}})).await;
        }
        caught_up::<K>(fixture, "marker").await;
        let note = format!("deletion blocked while still referenced by workloads: [{{MCPServer {server}}}]");
        expected.push(("DeletionBlocked".to_owned(), "Warning".to_owned(), "Delete".to_owned(), note));
        fixture.delete::<MCPServer>(&server).await;
        fixture.until_gone::<K>("c").await;
        expected.sort();
        // Events are told in the background.
        let all = async || Some(told::<K>(fixture, "c").await).filter(|told| told.len() >= expected.len());
        assert_eq!(fixture.eventually("all events", all).await, expected);

        let core: Api<CoreEvent> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
        let core = core.list(&ListParams::default()).await.unwrap().items.into_iter().filter(|event| {
            event.involved_object.kind.as_deref() == Some(K::DEFINITION.kind)
                && event.involved_object.name.as_deref() == Some("c")
        });
        let mut messages: Vec<String> = core.filter_map(|event| event.message).collect();
        messages.sort();
        let mut notes: Vec<String> = expected.into_iter().map(|event| event.3).collect();
        notes.sort();
        assert_eq!(messages, notes);
    }
    let (_operator, _record) = start(&fixture).await;
    for_every_kind!(change, &fixture);
}
