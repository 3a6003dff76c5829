//! The Kubernetes half of a proxy: who may write the server behind it.

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;
use skep_operator::runner::{Backend, Deployed, RunnerError, Written};

use crate::cluster::Fixture;
use crate::trials;

trials![
    trap_66_only_a_strictly_newer_generation_stands,
    trap_66_no_older_proxy_overwrites_a_newer_one,
    what_is_not_said_any_more_goes,
    the_same_again_changes_nothing,
    services_belong_to_the_stateful_set,
    what_belongs_to_somebody_else_is_left_alone,
    a_server_is_missed_by_the_name_of_its_base,
];

const GENERATION: &str = "toolhive.stacklok.dev/mcpserver-generation";

fn backend(fixture: &Fixture, generation: i64, changes: &Value) -> Backend {
    let mut document = json!({"name": "n", "transport": "streamable-http", "target_port": 8080,
        "image": format!("server:{generation}"), "mcpserver_generation": generation});
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    let config = RunConfig::from_json(&document.to_string()).unwrap();
    Backend::new(fixture.client.clone(), &fixture.namespace, &config, false).unwrap()
}

fn stateful_sets(fixture: &Fixture) -> Api<DynamicObject> {
    Api::namespaced_with(fixture.client.clone(), &fixture.namespace, &ApiResource::erase::<StatefulSet>(&()))
}

/// The generation that a StatefulSet says it is of, and the one of its image.
fn written(object: &DynamicObject) -> (Option<String>, String) {
    let template = &object.data["spec"]["template"];
    let image = template["spec"]["containers"][0]["image"].as_str().unwrap();
    (template["metadata"]["annotations"][GENERATION].as_str().map(str::to_owned), image.to_owned())
}

async fn trap_66_only_a_strictly_newer_generation_stands(fixture: Fixture) {
    let api = stateful_sets(&fixture);
    let all = [(None, true), (Some("99"), true), (Some("100"), true), (Some("x"), true), (Some("200"), false)];
    for (existing, is_ours) in all {
        // Somebody else, who has no generation of his own.
        backend(&fixture, 0, &json!({})).write().await.unwrap();
        let stamp = json!({"spec": {"template": {"metadata": {"annotations": {GENERATION: existing}}}}});
        api.patch("n", &PatchParams::default(), &Patch::Merge(&stamp)).await.unwrap();
        let outcome = backend(&fixture, 100, &json!({})).write().await.unwrap();
        assert_eq!(matches!(outcome, Written::Generation(_)), is_ours, "{existing:?}: {outcome:?}");
        let found = written(&api.get("n").await.unwrap());
        let expected = if is_ours { (Some("100"), "server:100") } else { (existing, "server:0") };
        assert_eq!((found.0.as_deref(), found.1.as_str()), expected, "{existing:?}");
    }
    // Whoever came too late goes on with the server that is there.
    assert!(matches!(backend(&fixture, 100, &json!({})).deploy().await, Ok(Deployed::Newer)));
    // One without a generation is bound by nothing, and leaves the stamp of somebody else alone.
    backend(&fixture, 0, &json!({})).write().await.unwrap();
    assert_eq!(written(&api.get("n").await.unwrap()), (Some("200".to_owned()), "server:0".to_owned()));
}

async fn trap_66_no_older_proxy_overwrites_a_newer_one(fixture: Fixture) {
    const PROXIES: i64 = 24;
    let api = stateful_sets(&fixture);
    let seen: Arc<Mutex<Vec<i64>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let mut versions = watcher(api.clone(), watcher::Config::default()).default_backoff().applied_objects().boxed();
    let watching = tokio::spawn(async move {
        while let Some(object) = versions.next().await {
            let Some(object) = object.ok() else { continue };
            let (stamp, image) = written(&object);
            let stamp = stamp.unwrap();
            assert_eq!(image, format!("server:{stamp}"), "somebody wrote half of it");
            sink.lock().unwrap().push(stamp.parse().unwrap());
        }
    });
    // All at once, first when there is nothing and then when there is something. The factor mixes their order.
    for round in 0..3 {
        let generations = (0..PROXIES).map(|number| round * PROXIES + (number * 7) % PROXIES + 1);
        let backends: Vec<_> = generations.map(|generation| backend(&fixture, generation, &json!({}))).collect();
        let outcomes = join_all(backends.iter().map(|backend| async { backend.write().await.unwrap() })).await;
        let newest = (round + 1) * PROXIES;
        assert!(outcomes.iter().any(|outcome| matches!(outcome, Written::Generation(_))));
        assert_eq!(written(&api.get("n").await.unwrap()).1, format!("server:{newest}"));
        for name in ["mcp-n", "mcp-n-headless"] {
            let service = fixture.child::<Service>(name).await;
            assert_eq!(service["metadata"]["annotations"][GENERATION], newest.to_string(), "{name}");
        }
    }
    let is_last = async || (seen.lock().unwrap().last() == Some(&(3 * PROXIES))).then_some(());
    fixture.eventually("the last version", is_last).await;
    watching.abort();
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted(), "something older was written over something newer: {seen:?}");
}

async fn what_is_not_said_any_more_goes(fixture: Fixture) {
    let api = stateful_sets(&fixture);
    let variables = |object: &DynamicObject| -> Vec<String> {
        let env = object.data["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        env.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let usual = ["FASTMCP_PORT", "MCP_HOST", "MCP_PORT", "MCP_TRANSPORT"];
    for (generation, own) in [(1, &["GONE", "STAYS"][..]), (2, &["STAYS"]), (3, &["NEW"])] {
        let env: serde_json::Map<_, _> = own.iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
        backend(&fixture, generation, &json!({"env_vars": env})).write().await.unwrap();
        let mut expected: Vec<&str> = usual.iter().chain(own).copied().collect();
        expected.sort_unstable();
        let mut found = variables(&api.get("n").await.unwrap());
        found.sort_unstable();
        assert_eq!(found, expected, "generation {generation}");
    }
}

async fn the_same_again_changes_nothing(fixture: Fixture) {
    let api = stateful_sets(&fixture);
    let backend = backend(&fixture, 5, &json!({"env_vars": {"B": "2", "A": "1"}}));
    // The second one takes over what the first one made.
    backend.write().await.unwrap();
    backend.write().await.unwrap();
    let restart = json!({"spec": {"replicas": 3,
        "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}}});
    api.patch("n", &PatchParams::default(), &Patch::Merge(&restart)).await.unwrap();
    backend.write().await.unwrap();
    let before = api.get("n").await.unwrap();
    assert_eq!(before.data["spec"]["replicas"], 3, "their number is somebody else's");
    let annotations = &before.data["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["kubectl.kubernetes.io/restartedAt"], "2026-01-01T00:00:00Z");
    backend.write().await.unwrap();
    let after = api.get("n").await.unwrap();
    assert_eq!(after.metadata.generation, before.metadata.generation);
    assert_eq!(after.data["spec"], before.data["spec"]);
}

async fn services_belong_to_the_stateful_set(fixture: Fixture) {
    backend(&fixture, 1, &json!({})).write().await.unwrap();
    let owner = stateful_sets(&fixture).get("n").await.unwrap();
    let balancing = fixture.child::<Service>("mcp-n").await;
    let expected = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "n", "uid": owner.uid().unwrap(),
        "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(balancing["metadata"]["ownerReferences"], expected);
    let spec = &balancing["spec"];
    assert_eq!((&spec["type"], &spec["sessionAffinity"]), (&json!("ClusterIP"), &json!("ClientIP")));
    assert_eq!(spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], 1800);
    assert_eq!(spec["selector"], json!({"app": "n"}));
    assert_eq!(fixture.child::<Service>("mcp-n-headless").await["spec"]["clusterIP"], "None");
}

async fn what_belongs_to_somebody_else_is_left_alone(fixture: Fixture) {
    backend(&fixture, 1, &json!({})).write().await.unwrap();
    let owner = json!({"metadata": {"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Hive", "name": "h",
        "uid": "5f0c2a52-9d2b-4b52-8a55-6a5d1c0e0f11", "controller": true}]}});
    stateful_sets(&fixture).patch("n", &PatchParams::default(), &Patch::Merge(&owner)).await.unwrap();
    let error = backend(&fixture, 2, &json!({})).write().await.unwrap_err();
    assert!(matches!(&error, RunnerError::NotOurs { owner, .. } if owner == "Hive h"), "{error}");
}

async fn a_server_is_missed_by_the_name_of_its_base(fixture: Fixture) {
    let usual = backend(&fixture, 1, &json!({}));
    assert!(!usual.exists().await);
    usual.write().await.unwrap();
    assert!(usual.exists().await, "without another name it is the name of the server");
    let based = |base: &str, container: &str| json!({"base_name": base, "container_name": container});
    assert!(backend(&fixture, 1, &based("n", "another")).exists().await);
    assert!(!backend(&fixture, 1, &based("another", "n")).exists().await);
}
