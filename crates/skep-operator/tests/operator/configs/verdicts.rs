//! What is said about specs: good ones, bad ones, none at all, and such as cannot be read.

use serde_json::json;
use skep_api::conditions::{ConditionStatus, reasons, types};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_conformance::changes::{Example as _, for_every_kind};
use skep_operator::config::ConfigKind;

use super::{ConfigExample, condition, is_valid, start};
use crate::cluster::Fixture;
use crate::trials;

trials![
    specs_are_judged_and_hashed,
    an_object_without_a_spec_is_judged,
    an_unreadable_object_stops_nobody,
    an_object_older_than_a_rule_is_judged,
    advice_follows_every_spec,
];

async fn specs_are_judged_and_hashed(fixture: Fixture) {
    async fn judge<K: ConfigExample>(fixture: &Fixture) {
        fixture.create::<K>("c", K::good(1)).await;
        let first = fixture.until::<K>("c", "valid", is_valid).await;
        let valid = condition(&first, types::VALID).unwrap();
        assert_eq!((valid.reason.as_str(), valid.message.as_str()), (K::REASONS.0, "Spec validation passed"));
        let status = first.status().unwrap();
        assert_eq!(status.observed_generation, first.meta().generation);
        assert_eq!(status.config_hash.as_ref().map(String::len), Some(16));
        let Some(bad) = K::bad() else { return };

        fixture.merge::<K>("c", json!({"spec": bad})).await;
        let is_bad =
            |object: &K| condition(object, types::VALID).is_some_and(|valid| valid.status == ConditionStatus::False);
        let spoilt = fixture.until::<K>("c", "invalid", is_bad).await;
        let invalid = condition(&spoilt, types::VALID).unwrap();
        assert_eq!(invalid.observed_generation, spoilt.meta().generation);
        assert_eq!(invalid.message, spoilt.validate().unwrap_err().to_string());
        let kept = spoilt.status().unwrap();
        assert_eq!(kept.config_hash, status.config_hash, "the last good hash stays");
        assert_eq!(kept.observed_generation, status.observed_generation);

        fixture.merge::<K>("c", json!({"spec": K::good(2)})).await;
        let healed = fixture.until::<K>("c", "valid again", is_valid).await;
        assert_ne!(healed.status().unwrap().config_hash, status.config_hash);
        assert_eq!(healed.status().unwrap().observed_generation, healed.meta().generation);
    }
    let (_operator, record) = start(&fixture).await;
    for_every_kind!(judge, &fixture);
    for sent in record.answered_writes().await {
        assert_eq!(sent.code, Some(200), "no write meets another one of ours: {sent:?}");
    }
    // Finalizer and verdict, then one write for each change of the spec.
    assert_eq!(record.writes_to("/mcpoidcconfigs/c/status").len(), 3);
    let obo = fixture.merge::<MCPExternalAuthConfig>("c", json!({"spec": MCPExternalAuthConfig::bad()})).await;
    let refused = |object: &MCPExternalAuthConfig| {
        condition(object, types::VALID).is_some_and(|valid| valid.observed_generation == obo.metadata.generation)
    };
    let obo = fixture.until("c", "refused", refused).await;
    assert_eq!(condition(&obo, types::VALID).unwrap().reason, reasons::INVALID_CONFIG);
}

async fn an_object_without_a_spec_is_judged(fixture: Fixture) {
    async fn judge<K: ConfigKind>(fixture: &Fixture, expected: ConditionStatus) {
        fixture.write_loosely::<K>("bare", json!({"metadata": {"name": "bare"}})).await;
        let judged = |object: &K| condition(object, types::VALID).is_some();
        let object = fixture.until::<K>("bare", "judged", judged).await;
        assert_eq!(condition(&object, types::VALID).unwrap().status, expected, "{object:?}");
        fixture.delete::<K>("bare").await;
        fixture.until_gone::<K>("bare").await;
    }
    let (_operator, _record) = start(&fixture).await;
    judge::<MCPAuthzConfig>(&fixture, ConditionStatus::False).await;
    judge::<MCPExternalAuthConfig>(&fixture, ConditionStatus::False).await;
    judge::<MCPOIDCConfig>(&fixture, ConditionStatus::False).await;
    judge::<MCPTelemetryConfig>(&fixture, ConditionStatus::True).await;
    judge::<MCPToolConfig>(&fixture, ConditionStatus::True).await;
    judge::<MCPWebhookConfig>(&fixture, ConditionStatus::False).await;
}

async fn an_unreadable_object_stops_nobody(fixture: Fixture) {
    fixture.create::<MCPOIDCConfig>("was-good", MCPOIDCConfig::good(1)).await;
    let future = json!({"metadata": {"name": "future"}, "spec": {"type": "telepathy"}});
    fixture.write_loosely::<MCPOIDCConfig>("future", future).await;
    let (_operator, _record) = start(&fixture).await;
    fixture.until::<MCPOIDCConfig>("was-good", "valid", is_valid).await;
    // What is on its way back cannot be read by a typed client either.
    let status = async |name: &str| {
        let request = http::Request::get(fixture.path_of::<MCPOIDCConfig>(name)).body(Vec::new()).unwrap();
        let object: serde_json::Value = fixture.client.request(request).await.unwrap();
        object["status"]["conditions"].as_array().and_then(|conditions| conditions.first().cloned())
    };
    let told = fixture.eventually("a condition on what cannot be read", async || status("future").await).await;
    assert_eq!((told["type"].as_str(), told["status"].as_str()), (Some("Valid"), Some("False")));
    assert!(told["message"].as_str().unwrap().contains("telepathy"), "{told}");

    let newer = json!({"metadata": {"name": "was-good"}, "spec": {"type": "telepathy", "inline": null}});
    fixture.write_loosely::<MCPOIDCConfig>("was-good", newer).await;
    let refused = async || status("was-good").await.filter(|told| told["status"] == "False");
    fixture.eventually("a condition on what can no longer be read", refused).await;
    fixture.create::<MCPOIDCConfig>("other", MCPOIDCConfig::good(2)).await;
    fixture.until::<MCPOIDCConfig>("other", "valid", is_valid).await;

    for name in ["was-good", "future"] {
        let request = http::Request::delete(fixture.path_of::<MCPOIDCConfig>(name)).body(Vec::new()).unwrap();
        fixture.client.request::<serde_json::Value>(request).await.unwrap();
        let gone = async || {
            let request = http::Request::get(fixture.path_of::<MCPOIDCConfig>(name)).body(Vec::new()).unwrap();
            fixture.client.request::<serde_json::Value>(request).await.err()
        };
        fixture.eventually("nothing left of what cannot be read", gone).await;
    }
}

async fn an_object_older_than_a_rule_is_judged(fixture: Fixture) {
    let (_operator, _record) = start(&fixture).await;
    let empty = json!({"metadata": {"name": "old"}, "spec": {"validating": []}});
    fixture.write_loosely::<MCPWebhookConfig>("old", empty).await;
    let judged = |object: &MCPWebhookConfig| condition(object, types::VALID).is_some();
    let object = fixture.until::<MCPWebhookConfig>("old", "judged", judged).await;
    let invalid = condition(&object, types::VALID).unwrap();
    assert_eq!(invalid.status, ConditionStatus::False);
    assert_eq!(invalid.message, "at least one validating or mutating webhook must be defined");
}

async fn advice_follows_every_spec(fixture: Fixture) {
    type Config = MCPExternalAuthConfig;
    let server = |confidential: bool, issuer: &str| {
        let upstream = json!({"name": "p", "type": "oauth2", "oauth2Config": {"clientId": "c",
            "authorizationEndpoint": "https://p/a", "tokenEndpoint": "https://p/t"}});
        json!({"type": "embeddedAuthServer", "embeddedAuthServer": {"issuer": issuer, "upstreamProviders": [upstream],
            "allowConfidentialClientRegistration": confidential}})
    };
    let advice = |object: &Config| {
        condition(object, types::IDENTITY_SYNTHESIZED).map(|advice| (advice.status, advice.observed_generation))
    };
    let (_operator, _record) = start(&fixture).await;
    fixture.create::<Config>("c", server(false, "https://own.example")).await;
    let object = fixture.until::<Config>("c", "valid", is_valid).await;
    assert_eq!(advice(&object), Some((ConditionStatus::True, object.metadata.generation)));

    let invalid = |object: &Config| {
        condition(object, types::VALID).is_some_and(|valid| {
            valid.status == ConditionStatus::False && valid.observed_generation == object.metadata.generation
        })
    };
    fixture.merge::<Config>("c", json!({"spec": server(true, "http://localhost:1")})).await;
    let object = fixture.until::<Config>("c", "invalid", invalid).await;
    assert_eq!(advice(&object), Some((ConditionStatus::True, object.metadata.generation)));

    let other_type = json!({"spec": {"type": "obo", "obo": {}, "embeddedAuthServer": null}});
    fixture.merge::<Config>("c", other_type).await;
    let object = fixture.until::<Config>("c", "invalid", invalid).await;
    assert_eq!(advice(&object), None);
}
