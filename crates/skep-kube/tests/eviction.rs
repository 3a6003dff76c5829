//! Evictions with a budget that allows some.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{EvictParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

const PODS: usize = 6;
const ALLOWED: usize = 2;

async fn guarded_pods() -> (Client, Vec<String>) {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap();
    let client = server.client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let names: Vec<String> = (0..PODS).map(|number| format!("bee-{number}")).collect();
    for name in &names {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "hive"}}, "spec": {
            "containers": [{"name": "c", "image": "i"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    }
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({"metadata": {"name": "guard"}, "spec": {"minAvailable": PODS - ALLOWED,
        "selector": {"matchLabels": {"app": "hive"}}}});
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    (client, names)
}

/// What a controller would say of the budget.
async fn allow(client: &Client, allowed: usize) {
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": PODS,
        "desiredHealthy": PODS - ALLOWED, "expectedPods": PODS}});
    budgets.patch_status("guard", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn evict_all(client: &Client, names: &[String]) -> Vec<String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let parameters = EvictParams::default();
    let evictions = names.iter().map(|name| pods.evict(name, &parameters));
    let outcomes = futures::future::join_all(evictions).await;
    let mut gone = Vec::new();
    for (name, outcome) in names.iter().zip(outcomes) {
        match outcome {
            Ok(_) => gone.push(name.clone()),
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 429, "{status:?}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    gone
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_lets_go_as_many_as_it_allows() {
    let (client, names) = guarded_pods().await;
    assert!(evict_all(&client, &names).await.is_empty(), "nobody has looked at the budget yet");
    allow(&client, ALLOWED).await;
    let gone = evict_all(&client, &names).await;
    assert_eq!(gone.len(), ALLOWED, "{gone:?}");

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in &names {
        assert_eq!(pods.get_opt(name).await.unwrap().is_none(), gone.contains(name), "{name}");
    }
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let status = budgets.get("guard").await.unwrap().status.unwrap();
    assert_eq!(status.disruptions_allowed.unwrap_or_default(), 0);
    let told: Vec<String> = status.disrupted_pods.unwrap_or_default().into_keys().collect();
    assert_eq!(told, gone);
}
