//! What workloads make of the configs that they name.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::conditions::{self, Condition, ConditionStatus, types};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig,
};
use skep_api::names::annotations;
use skep_operator::cluster::OwnKind;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, passes, waiting};
use crate::configs::{ConfigExample, Example as _, is_blocked};
use crate::servers::{is_settled, settled};
use crate::trials;
use crate::wire::Faults;

trials![
    a_config_is_followed_and_left_alone,
    a_mirrored_refusal_has_a_reason,
    every_change_of_a_config_rolls_the_proxy,
    what_cannot_be_read_any_more_changes_no_pod,
    a_config_that_is_to_go_serves_until_then,
    a_wrong_auth_server_is_told_once_and_for_all,
    two_auth_servers_are_one_too_many,
];

/// The controllers of workloads, and of nothing else.
fn settings() -> Settings {
    Settings { controllers: BTreeSet::from(["MCPServer", "MCPRemoteProxy"]), ..Settings::default() }
}

fn found<'a>(conditions: &'a [Condition], type_: &str) -> &'a Condition {
    conditions::find(conditions, type_).unwrap()
}

fn conditions_of(server: &MCPServer) -> &[Condition] {
    server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

fn checksum(deployment: &Value) -> Value {
    deployment["spec"]["template"]["metadata"]["annotations"][annotations::RUN_CONFIG_CHECKSUM].clone()
}

/// Writes what the controller of a config would.
async fn judge<K: OwnKind>(fixture: &Fixture, name: &str, hash: &str, valid: &str) -> K {
    let condition = json!({"type": "Valid", "status": valid, "reason": "Because", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    fixture.merge_status::<K>(name, json!({"status": {"configHash": hash, "conditions": [condition]}})).await
}

async fn a_config_is_followed_and_left_alone(fixture: Fixture) {
    let (_operator, record) = fixture.operator_with(settings(), Faults::none()).await;
    fixture.create::<MCPAuthzConfig>("z", MCPAuthzConfig::good(1)).await;
    let reference = json!({"name": "z"});
    fixture.create::<MCPServer>("s", json!({"image": "i", "authzConfigRef": reference})).await;
    let remote = json!({"remoteUrl": "https://mcp.example.com", "authzConfigRef": reference});
    fixture.create::<MCPRemoteProxy>("p", remote).await;
    for (hash, valid) in [("hash-1", "True"), ("hash-2", "True"), ("hash-2", "False"), ("hash-2", "True")] {
        let config = judge::<MCPAuthzConfig>(&fixture, "z", hash, valid).await;
        let follows = |status: Value| {
            let conditions: Vec<Condition> = serde_json::from_value(status["conditions"].clone()).unwrap_or_default();
            let verdict = conditions::find(&conditions, types::AUTHZ_CONFIG_REF_VALIDATED);
            let is_failed = status["phase"] == "Failed";
            status["authzConfigHash"] == hash
                && is_failed == (valid == "False")
                && verdict.is_some_and(|verdict| json!(verdict.status) == valid)
        };
        fixture.until::<MCPServer>("s", "following", |server| follows(json!(server.status))).await;
        fixture.until::<MCPRemoteProxy>("p", "following", |proxy| follows(json!(proxy.status))).await;
        let now = fixture.api::<MCPAuthzConfig>().get("z").await.unwrap();
        assert_eq!(now.resource_version(), config.resource_version(), "who names a config does not write it");
    }
    fixture.merge::<MCPServer>("s", json!({"spec": {"authzConfigRef": null}})).await;
    let free = |server: &MCPServer| {
        let is_gone = conditions::find(conditions_of(server), types::AUTHZ_CONFIG_REF_VALIDATED).is_none();
        is_settled(server) && is_gone && server.status.as_ref().is_some_and(|status| status.authz_config_hash.is_none())
    };
    fixture.until::<MCPServer>("s", "free of it", free).await;
    let written: Vec<_> = record.writes().into_iter().filter(|sent| sent.path.contains("/mcpauthzconfigs/")).collect();
    assert!(written.is_empty(), "{written:#?}");
}

async fn a_mirrored_refusal_has_a_reason(fixture: Fixture) {
    let (_operator, _record) = fixture.operator_with(settings(), Faults::none()).await;
    let exchange = json!({"tokenUrl": "https://login.example", "audience": "a"});
    fixture.create::<MCPExternalAuthConfig>("e", json!({"type": "tokenExchange", "tokenExchange": exchange})).await;
    let condition = json!({"type": "Valid", "status": "False", "reason": "", "message": "because",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    // Today's schema wants a reason.
    let patch = json!({"status": {"conditions": [condition]}});
    let api = fixture.loose_api::<MCPExternalAuthConfig>();
    api.patch_status("e", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    fixture.create::<MCPServer>("s", json!({"image": "i", "externalAuthConfigRef": {"name": "e"}})).await;
    let told =
        |server: &MCPServer| conditions::find(conditions_of(server), types::EXTERNAL_AUTH_CONFIG_VALIDATED).is_some();
    let server = fixture.until::<MCPServer>("s", "told", told).await;
    let mirrored = found(conditions_of(&server), types::EXTERNAL_AUTH_CONFIG_VALIDATED);
    assert_eq!((mirrored.reason.as_str(), mirrored.message.as_str()), ("InvalidExternalAuthConfig", "because"));
    judge::<MCPExternalAuthConfig>(&fixture, "e", "hash", "True").await;
    let healed = settled(&fixture, "s").await;
    assert_eq!(conditions::find(conditions_of(&healed), types::EXTERNAL_AUTH_CONFIG_VALIDATED), None);
}

async fn every_change_of_a_config_rolls_the_proxy(fixture: Fixture) {
    async fn change<K: ConfigExample>(fixture: &Fixture, specs: [Value; 2]) {
        let name = K::DEFINITION.singular();
        let [old, new] = specs;
        fixture.create::<K>(&name, old).await;
        let overrides = json!({"proxyDeployment": {"podTemplateMetadataOverrides": {
            "annotations": {"user": "u", annotations::RUN_CONFIG_CHECKSUM: "mine"}, "labels": {"l": "m"}}}});
        let spec = json!({"image": "i", "resourceOverrides": overrides, K::MEMBER: K::reference(&name)});
        fixture.create::<MCPServer>(&name, spec).await;
        settled(fixture, &name).await;
        let before = fixture.child::<Deployment>(&name).await;
        fixture.merge::<K>(&name, json!({"spec": new})).await;
        let rolled = |found: &Value| checksum(found) != checksum(&before);
        let after = fixture.until_child::<Deployment>(&name, "rolled", rolled).await;
        let noted = |found: &Value| -> Vec<String> {
            let noted = found["spec"]["template"]["metadata"]["annotations"].as_object().unwrap();
            noted.keys().cloned().collect()
        };
        let expected = [annotations::MCP_SERVER_GENERATION, annotations::RUN_CONFIG_CHECKSUM, "user"];
        assert_eq!(
            (noted(&before), noted(&after)),
            (expected.map(str::to_owned).into(), expected.map(str::to_owned).into())
        );
        let generation = |found: &Value| {
            found["spec"]["template"]["metadata"]["annotations"][annotations::MCP_SERVER_GENERATION].clone()
        };
        assert_eq!(generation(&before), generation(&after), "nobody touched the server");
    }
    let (_operator, _record) = fixture.operator().await;
    skep_conformance::changes::prepare(&fixture.place()).await.unwrap();
    let collector = |number: usize| {
        let endpoint = format!("collector-{number}:4318");
        json!({"openTelemetry": {"enabled": true, "endpoint": endpoint, "tracing": {"enabled": true}}})
    };
    change::<MCPTelemetryConfig>(&fixture, [1, 2].map(collector)).await;
    change::<MCPOIDCConfig>(&fixture, [1, 2].map(MCPOIDCConfig::good)).await;
    change::<MCPExternalAuthConfig>(&fixture, [1, 2].map(MCPExternalAuthConfig::good)).await;
}

async fn what_cannot_be_read_any_more_changes_no_pod(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let bundle = json!({"configMapRef": {"name": "ca", "key": "ca.crt"}});
    let spec = json!({"type": "inline", "inline": {"issuer": "https://one.example", "caBundleRef": bundle}});
    fixture.create::<MCPOIDCConfig>("o", spec).await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "oidcConfigRef": MCPOIDCConfig::reference("o")})).await;
    let server = settled(&fixture, "s").await;
    let bundled = found(conditions_of(&server), types::CA_BUNDLE_REF_VALIDATED).clone();
    assert_eq!(bundled.reason, "CABundleRefNotFound");
    let before = fixture.child::<Deployment>("s").await;
    let volumes = before["spec"]["template"]["spec"]["volumes"].to_string();
    assert!(volumes.contains("oidc-ca-bundle-ca"), "{volumes}");
    let newer = json!({"metadata": {"name": "o"}, "spec": {"type": "telepathy"}});
    fixture.write_loosely::<MCPOIDCConfig>("o", newer).await;
    let failed = |server: &MCPServer| {
        let verdict = conditions::find(conditions_of(server), types::OIDC_CONFIG_REF_VALIDATED);
        verdict.is_some_and(|verdict| verdict.status == ConditionStatus::False)
    };
    let server = fixture.until::<MCPServer>("s", "told", failed).await;
    assert_eq!(found(conditions_of(&server), types::CA_BUNDLE_REF_VALIDATED), &bundled);
    assert_eq!(fixture.child::<Deployment>("s").await["spec"], before["spec"]);
}

/// An authorization server of its own, with nobody who checks what it hands out.
fn auth_server() -> Value {
    let upstream = json!({"name": "p", "type": "oidc", "oidcConfig": {"clientId": "c",
        "issuerUrl": "https://idp.example", "clientSecretRef": {"name": "upstream", "key": "k"}}});
    json!({"type": "embeddedAuthServer",
        "embeddedAuthServer": {"issuer": "https://own.example", "upstreamProviders": [upstream]}})
}

async fn a_config_that_is_to_go_serves_until_then(fixture: Fixture) {
    async fn hold<K: ConfigExample>(fixture: &Fixture) {
        let name = format!("s-{}", K::DEFINITION.singular());
        fixture.create::<K>("c", K::good(1)).await;
        fixture.create::<MCPServer>(&name, json!({"image": "i", K::MEMBER: K::reference("c")})).await;
        settled(fixture, &name).await;
        fixture.delete::<K>("c").await;
        fixture.until::<K>("c", "kept", is_blocked).await;
        // Both the workload and the config itself can still be changed.
        fixture.merge::<MCPServer>(&name, json!({"spec": {"image": "another"}})).await;
        let is_another = |found: &Value| {
            let arguments = found["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
            arguments.is_some_and(|arguments| arguments.contains(&json!("another")))
        };
        let before = fixture.until_child::<Deployment>(&name, "rolled", is_another).await;
        settled(fixture, &name).await;
        fixture.merge::<K>("c", json!({"spec": K::good(2)})).await;
        let has_rolled = |found: &Value| checksum(found) != checksum(&before);
        fixture.until_child::<Deployment>(&name, "rolled again", has_rolled).await;
        settled(fixture, &name).await;
        fixture.delete::<MCPServer>(&name).await;
        fixture.until_gone::<K>("c").await;
    }
    let (_operator, _record) = fixture.operator().await;
    skep_conformance::changes::prepare(&fixture.place()).await.unwrap();
    hold::<MCPAuthzConfig>(&fixture).await;
    hold::<MCPExternalAuthConfig>(&fixture).await;
    hold::<MCPOIDCConfig>(&fixture).await;
}

async fn a_wrong_auth_server_is_told_once_and_for_all(fixture: Fixture) {
    let (operator, record) = fixture.operator().await;
    fixture.create::<MCPExternalAuthConfig>("a", auth_server()).await;
    let spec = json!({"image": "i", "authServerRef": {"kind": "MCPExternalAuthConfig", "name": "a"}});
    fixture.create::<MCPServer>("s", spec).await;
    let told = |server: &MCPServer| {
        let verdict = conditions::find(conditions_of(server), types::AUTH_SERVER_REF_VALIDATED);
        let is_seen = server.status.as_ref().is_some_and(|status| status.auth_server_config_hash.is_some());
        is_seen && verdict.is_some_and(|verdict| verdict.reason == "AuthServerRefInvalidConfig")
    };
    let server = fixture.until::<MCPServer>("s", "told", told).await;
    let text = "OIDC config is required for embedded auth server: OIDCConfigRef must be set on the MCPServer";
    assert_eq!(found(conditions_of(&server), types::AUTH_SERVER_REF_VALIDATED).message, text);
    let message = server.status.as_ref().unwrap().message.clone();
    assert_eq!(message, Some(format!("Failed to build configuration: {text}")));
    fixture.quiet(&record).await;
    let server = fixture.api::<MCPServer>().get("s").await.unwrap();
    let (before, writes) = (passes(&operator, "MCPServer"), record.writes().len());
    operator.resync();
    fixture.until_passed(&operator, "MCPServer", before).await;
    fixture.quiet(&record).await;
    assert_eq!(fixture.api::<MCPServer>().get("s").await.unwrap().status, server.status);
    assert_eq!(record.writes().len(), writes);
    let rest = async || (waiting(&operator, "MCPServer") == 0).then_some(());
    fixture.eventually("rest: only a person can heal it", rest).await;
}

async fn two_auth_servers_are_one_too_many(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPExternalAuthConfig>("a", auth_server()).await;
    fixture.create::<MCPOIDCConfig>("o", MCPOIDCConfig::good(1)).await;
    let both = json!({"authServerRef": {"kind": "MCPExternalAuthConfig", "name": "a"},
        "externalAuthConfigRef": {"name": "a"}, "oidcConfigRef": MCPOIDCConfig::reference("o")});
    let mut server = both.clone();
    server["image"] = json!("i");
    let mut proxy = both;
    proxy["remoteUrl"] = json!("https://mcp.example.com");
    fixture.create::<MCPServer>("s", server).await;
    fixture.create::<MCPRemoteProxy>("p", proxy).await;
    let told = |status: Value| {
        let is_told = status["message"].as_str().is_some_and(|text| text.contains("conflict: both authServerRef and"));
        let conditions: Vec<Condition> = serde_json::from_value(status["conditions"].clone()).unwrap_or_default();
        is_told && status["phase"] == "Failed" && conditions::is_true(&conditions, types::AUTH_SERVER_REF_VALIDATED)
    };
    fixture.until::<MCPServer>("s", "told", |server| told(json!(server.status))).await;
    fixture.until::<MCPRemoteProxy>("p", "told", |proxy| told(json!(proxy.status))).await;
    assert!(fixture.maybe_child::<Deployment>("p").await.is_none());
}
