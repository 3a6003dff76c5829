//! What is written, recorded on the wire: only what changes, and nothing of what others wrote is lost.

use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use skep_api::conditions::types;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_api::names::field_managers;
use skep_conformance::changes::{Example as _, for_every_kind};

use super::{ConfigExample, caught_up, condition, is_blocked, is_used_by, is_valid, server_of, start};
use crate::cluster::Fixture;
use crate::trials;
use crate::wire::Sent;

trials![
    finalizers_are_patched_with_a_version,
    a_finalizer_added_in_between_survives,
    a_condition_added_in_between_survives,
    a_member_changed_in_between_survives,
    a_second_look_writes_nothing,
    the_operator_signs_what_it_writes,
];

const FOREIGN: &str = "example.com/foreign";

fn foreign_condition() -> Value {
    json!({"type": "Foreign", "status": "True", "reason": "Because", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// A merge patch of these members of the metadata, and of nothing else, for one version of the object.
fn assert_locked(sent: &Sent, members: &[&str]) {
    assert_eq!((sent.method.as_str(), sent.content_type.as_str()), ("PATCH", "application/merge-patch+json"));
    let body = sent.body.as_object().unwrap();
    assert_eq!(body.keys().collect::<Vec<_>>(), ["metadata"], "{sent:?}");
    let metadata = body["metadata"].as_object().unwrap();
    assert!(metadata["resourceVersion"].is_string(), "{sent:?}");
    let mut found: Vec<&str> = metadata.keys().map(String::as_str).filter(|name| *name != "resourceVersion").collect();
    found.sort_unstable();
    assert_eq!(found, members, "{sent:?}");
}

async fn come_and_go<K: ConfigExample>(fixture: &Fixture) {
    let object = json!({"metadata": {"name": "c", "finalizers": [FOREIGN]}, "spec": K::good(1)});
    let object: K = serde_json::from_value(object).unwrap();
    assert!(!object.finalizers().iter().any(|found| found == K::FINALIZER));
    fixture.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    fixture.until::<K>("c", "valid", is_valid).await;
    fixture.delete::<K>("c").await;
    let alone = fixture.until::<K>("c", "let go", |object| object.finalizers() == [FOREIGN]).await;
    assert_eq!(alone.status().unwrap().reference_count, Some(0));
    fixture.merge::<K>("c", json!({"metadata": {"finalizers": []}})).await;
    fixture.until_gone::<K>("c").await;
}

async fn finalizers_are_patched_with_a_version(fixture: Fixture) {
    let (_operator, record) = start(&fixture).await;
    let record = &record;
    let check = async |path: String, finalizer: &str| {
        let writes = record.writes_to(&path);
        let [added, removed] = writes.as_slice() else { panic!("{writes:#?}") };
        for sent in &writes {
            assert_locked(sent, &["finalizers"]);
        }
        assert_eq!(added.body["metadata"]["finalizers"], json!([FOREIGN, finalizer]));
        assert_eq!(removed.body["metadata"]["finalizers"], json!([FOREIGN]));
        for sent in record.writes_to(&format!("{path}/status")) {
            assert_eq!(sent.content_type, "application/merge-patch+json");
            let lists = sent.body["status"].as_object().unwrap().values().any(Value::is_array);
            assert_eq!(sent.body["metadata"]["resourceVersion"].is_string(), lists, "{sent:?}");
        }
    };
    for_every_kind!(come_and_go, &fixture);
    for sent in record.answered_writes().await {
        assert_eq!(sent.code, Some(200), "{sent:?}");
    }
    check("/mcpauthzconfigs/c".to_owned(), "mcpauthzconfig.toolhive.stacklok.dev/finalizer").await;
    check("/mcpexternalauthconfigs/c".to_owned(), "mcpexternalauthconfig.toolhive.stacklok.dev/finalizer").await;
    check("/mcpoidcconfigs/c".to_owned(), "mcpoidcconfig.toolhive.stacklok.dev/finalizer").await;
    check("/mcptelemetryconfigs/c".to_owned(), "mcptelemetryconfig.toolhive.stacklok.dev/finalizer").await;
    check("/mcptoolconfigs/c".to_owned(), "toolhive.stacklok.dev/toolconfig-finalizer").await;
    check("/mcpwebhookconfigs/c".to_owned(), "mcpwebhookconfig.toolhive.stacklok.dev/finalizer").await;
}

async fn a_finalizer_added_in_between_survives(fixture: Fixture) {
    let (_operator, record) = start(&fixture).await;
    let mut stopped = record.stop("/mcpoidcconfigs/c");
    fixture.create::<MCPOIDCConfig>("c", MCPOIDCConfig::good(1)).await;
    stopped.arrived().await;
    let between = json!({"metadata": {"finalizers": [FOREIGN], "annotations": {"a": "b"}}});
    fixture.merge::<MCPOIDCConfig>("c", between).await;
    drop(stopped);
    let object = fixture.until::<MCPOIDCConfig>("c", "valid", is_valid).await;
    assert_eq!(object.finalizers(), [FOREIGN, "mcpoidcconfig.toolhive.stacklok.dev/finalizer"]);
    assert_eq!(object.annotations().get("a").map(String::as_str), Some("b"));

    let mut stopped = record.stop("/mcpoidcconfigs/c");
    fixture.delete::<MCPOIDCConfig>("c").await;
    stopped.arrived().await;
    // Of an object that is being deleted a finalizer can be taken, not added.
    fixture.merge::<MCPOIDCConfig>("c", json!({"metadata": {"annotations": {"a": "c"}}})).await;
    drop(stopped);
    let object = fixture.until::<MCPOIDCConfig>("c", "let go", |object| object.finalizers() == [FOREIGN]).await;
    assert_eq!(object.annotations().get("a").map(String::as_str), Some("c"));
    let mut writes = record.answered_writes().await;
    writes.retain(|sent| sent.path.ends_with("/c"));
    let codes: Vec<Option<u16>> = writes.iter().map(|sent| sent.code).collect();
    assert_eq!(codes, [Some(409), Some(200), Some(409), Some(200)]);
    fixture.merge::<MCPOIDCConfig>("c", json!({"metadata": {"finalizers": []}})).await;
}

async fn a_member_changed_in_between_survives(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    let mut stopped = record.stop("/mcpremoteproxies/p/status");
    fixture.create::<MCPRemoteProxy>("p", json!({"remoteUrl": "https://mcp.example.com"})).await;
    stopped.arrived().await;
    // Somebody else's member: whoever publishes the proxy knows its address.
    let address = "https://published.example.com";
    fixture.merge_status::<MCPRemoteProxy>("p", json!({"status": {"externalUrl": address}})).await;
    drop(stopped);
    let proxy = fixture.until::<MCPRemoteProxy>("p", "settled", crate::remote_proxies::is_settled).await;
    assert_eq!(json!(proxy.status)["externalUrl"], address);
    fixture.merge::<MCPRemoteProxy>("p", json!({"spec": {"remoteUrl": "http://127.0.0.1"}})).await;
    let failed = |proxy: &MCPRemoteProxy| json!(proxy.status)["phase"] == "Failed";
    let proxy = fixture.until::<MCPRemoteProxy>("p", "failed", failed).await;
    assert_eq!(json!(proxy.status)["externalUrl"], address);
    for sent in record.writes_to("/mcpremoteproxies/p/status") {
        assert_eq!(sent.body["status"].get("externalUrl"), None, "{sent:?}");
    }
}

async fn a_condition_added_in_between_survives(fixture: Fixture) {
    let (_operator, record) = start(&fixture).await;
    let mut stopped = record.stop("/mcpoidcconfigs/c/status");
    fixture.create::<MCPOIDCConfig>("c", MCPOIDCConfig::good(1)).await;
    stopped.arrived().await;
    fixture.merge_status::<MCPOIDCConfig>("c", json!({"status": {"conditions": [foreign_condition()]}})).await;
    drop(stopped);
    let object = fixture.until::<MCPOIDCConfig>("c", "valid", is_valid).await;
    let foreign = condition(&object, "Foreign").unwrap();
    fixture.merge::<MCPOIDCConfig>("c", json!({"spec": MCPOIDCConfig::bad()})).await;
    let refused = |object: &MCPOIDCConfig| {
        condition(object, types::VALID).is_some_and(|valid| valid.observed_generation == object.metadata.generation)
    };
    let object = fixture.until::<MCPOIDCConfig>("c", "invalid", refused).await;
    assert_eq!(condition(&object, "Foreign"), Some(foreign.clone()));
    fixture.create::<MCPServer>("user", server_of::<MCPOIDCConfig>("c")).await;
    fixture.until::<MCPOIDCConfig>("c", "used", is_used_by(&["MCPServer/user"])).await;
    fixture.delete::<MCPOIDCConfig>("c").await;
    let object = fixture.until::<MCPOIDCConfig>("c", "kept", is_blocked).await;
    assert_eq!(condition(&object, "Foreign"), Some(foreign));
    fixture.delete::<MCPServer>("user").await;
    fixture.until_gone::<MCPOIDCConfig>("c").await;
}

async fn a_second_look_writes_nothing(fixture: Fixture) {
    async fn look_again<K: ConfigExample>(fixture: &Fixture) {
        let server = format!("{}-user", K::DEFINITION.singular());
        fixture.create::<MCPServer>(&server, server_of::<K>("good")).await;
        fixture.create::<K>("good", K::good(1)).await;
        fixture.until::<K>("good", "valid", is_valid).await;
        fixture.until::<K>("good", "used", is_used_by(&[&format!("MCPServer/{server}")])).await;
        fixture.create::<K>("bad", K::bad().unwrap_or_else(|| K::good(2))).await;
        fixture.until::<K>("bad", "judged", |object| condition(object, types::VALID).is_some()).await;
    }
    async fn annotate<K: ConfigExample>(fixture: &Fixture) {
        for name in ["good", "bad"] {
            let annotation = json!({"metadata": {"annotations": {"foreign": "a"}, "labels": {"foreign": "l"}}});
            let touched = fixture.merge::<K>(name, annotation).await;
            caught_up::<K>(fixture, "marker").await;
            let now = fixture.api::<K>().get(name).await.unwrap();
            assert_eq!(now.resource_version(), touched.resource_version());
        }
    }
    let (operator, _record) = start(&fixture).await;
    for_every_kind!(look_again, &fixture);
    drop(operator);
    // A new operator looks at everything.
    let (_operator, record) = start(&fixture).await;
    for_every_kind!(annotate, &fixture);
    let others: Vec<Sent> = record.writes().into_iter().filter(|sent| !sent.path.contains("/marker")).collect();
    assert!(others.is_empty(), "{others:#?}");
}

async fn the_operator_signs_what_it_writes(fixture: Fixture) {
    let (_operator, _record) = start(&fixture).await;
    fixture.create::<MCPOIDCConfig>("c", MCPOIDCConfig::good(1)).await;
    let object = fixture.until::<MCPOIDCConfig>("c", "valid", is_valid).await;
    let entries = object.metadata.managed_fields.unwrap_or_default();
    let ours = entries.iter().filter(|entry| entry.manager.as_deref() == Some(field_managers::OPERATOR));
    let mut places: Vec<Option<&str>> = ours.map(|entry| entry.subresource.as_deref()).collect();
    places.sort_unstable();
    assert_eq!(places, [None, Some("status")], "{entries:#?}");
    let anybody = entries.iter().filter(|entry| entry.subresource.is_some()).count();
    assert_eq!(anybody, 1, "nobody else has written the status: {entries:#?}");
}
