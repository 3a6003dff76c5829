//! What is whose: objects of others are neither touched nor counted, and nothing of ours is left behind.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::conditions::{ConditionStatus, types};
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_api::names::{annotations, field_managers, labels};

use crate::cluster::Fixture;
use crate::trials;

trials![
    a_restart_rolls_nobody_else,
    a_backend_of_somebody_else_is_not_ours,
    a_backend_that_nobody_adopted_goes_with_its_server,
];

/// A StatefulSet, as its writer sends it.
fn stateful_set(labels: &labels::Labels, owners: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "s", "labels": labels, "ownerReferences": owners},
        "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "s"}},
            "template": {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [{"name": "mcp", "image": "i"}]}}}})
}

async fn apply_set(fixture: &Fixture, object: &Value) -> StatefulSet {
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    sets.patch("s", &PatchParams::apply(field_managers::PROXY_RUNNER), &Patch::Apply(object)).await.unwrap()
}

async fn a_restart_rolls_nobody_else(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPRemoteProxy>("n", json!({"remoteUrl": "https://mcp.example.com"})).await;
    fixture.until_child::<Deployment>("n", "there", |_| true).await;
    fixture.quiet(&record).await;
    let before = fixture.child::<Deployment>("n").await;
    fixture.create::<MCPServer>("n", json!({"image": "i"})).await;
    let at = "2026-02-03T04:05:06Z";
    fixture.merge::<MCPServer>("n", json!({"metadata": {"annotations": {annotations::RESTARTED_AT: at}}})).await;
    let done = |server: &MCPServer| {
        let noted = server.metadata.annotations.as_ref().and_then(|all| all.get(annotations::LAST_PROCESSED_RESTART));
        noted.is_some_and(|noted| noted == at)
    };
    fixture.until::<MCPServer>("n", "done with", done).await;
    fixture.quiet(&record).await;
    let after = fixture.child::<Deployment>("n").await;
    assert_eq!(after["spec"], before["spec"], "the Deployment is the remote proxy's");
}

async fn a_backend_of_somebody_else_is_not_ours(fixture: Fixture) {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "controller": true});
    let map = json!({"metadata": {"name": "owner"}});
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let map = maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let mut owner = owner;
    owner["uid"] = json!(map.metadata.uid);
    apply_set(&fixture, &stateful_set(&labels::Labels::new(), &json!([owner]))).await;
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    let failed =
        |server: &MCPServer| server.status.as_ref().is_some_and(|status| status.phase == Some(MCPServerPhase::Failed));
    let server = fixture.until::<MCPServer>("s", "failed", failed).await;
    let verdict = skep_api::conditions::find(&server.status.unwrap().conditions, types::READY).cloned().unwrap();
    assert_eq!(verdict.status, ConditionStatus::False);
    assert!(verdict.message.starts_with("StatefulSet s exists and belongs to ConfigMap owner"), "{}", verdict.message);
    // It goes, and the StatefulSet stays.
    fixture.delete::<MCPServer>("s").await;
    fixture.until_gone::<MCPServer>("s").await;
    fixture.quiet(&record).await;
    assert!(record.writes_to("/statefulsets/s").is_empty());
    assert_eq!(fixture.child::<StatefulSet>("s").await["metadata"]["deletionTimestamp"], Value::Null);
}

async fn a_backend_that_nobody_adopted_goes_with_its_server(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    // Something is missing, so that nobody looks after the backend.
    fixture.create::<MCPServer>("s", json!({"image": "i", "toolConfigRef": {"name": "nowhere"}})).await;
    let failed =
        |server: &MCPServer| server.status.as_ref().is_some_and(|status| status.phase == Some(MCPServerPhase::Failed));
    fixture.until::<MCPServer>("s", "failed", failed).await;
    let backend = labels::backend(labels::Labels::new(), "s");
    let set = apply_set(&fixture, &stateful_set(&backend, &json!([]))).await;
    let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": set.metadata.uid,
        "controller": true}]);
    let service = json!({"metadata": {"name": "mcp-s", "labels": backend, "ownerReferences": owner},
        "spec": {"ports": [{"port": 1}]}});
    let services: Api<Service> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    fixture.delete::<MCPServer>("s").await;
    fixture.until_gone::<MCPServer>("s").await;
    fixture.until_child_gone::<StatefulSet>("s").await;
    fixture.until_child_gone::<Service>("mcp-s").await;
}
