//! Writers that name no revision never get in each other's way, as many as they are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::future::Future;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;
use tokio::task::JoinSet;

const WRITERS: usize = 16;
const WRITES: usize = 10;

async fn client() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client()
}

async fn with_config_map() -> Api<ConfigMap> {
    let api = Api::default_namespaced(client().await);
    api.create(&PostParams::default(), &map(&json!({}))).await.unwrap();
    api
}

fn map(data: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "shared" }, "data": data })).unwrap()
}

/// Runs all writers at once. Each write must go through.
async fn all_at_once<F: Future<Output = kube::Result<()>> + Send + 'static>(write: impl Fn(usize, usize) -> F) {
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        for turn in 0..WRITES {
            tasks.spawn(write(writer, turn));
        }
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_of_disjoint_members_all_stay() {
    let api = with_config_map().await;
    all_at_once(|writer, turn| {
        let api = api.clone();
        async move {
            let patch = Patch::Merge(json!({ "data": { format!("key{writer}-{turn}"): "value" } }));
            api.patch("shared", &PatchParams::default(), &patch).await.map(drop)
        }
    })
    .await;
    assert_eq!(api.get("shared").await.unwrap().data.unwrap().len(), WRITERS * WRITES);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_without_a_revision_go_through() {
    let api = with_config_map().await;
    all_at_once(|writer, turn| {
        let api = api.clone();
        async move {
            let new = map(&json!({ "writer": writer.to_string(), "turn": turn.to_string() }));
            api.replace("shared", &PostParams::default(), &new).await.map(drop)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_configurations_of_many_managers_go_through() {
    let api = with_config_map().await;
    all_at_once(|writer, turn| {
        let api = api.clone();
        async move {
            let own = format!("key{writer}");
            let configuration = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" },
                                        "data": { own: turn.to_string() } });
            let options = PatchParams::apply(&format!("writer{writer}")).force();
            api.patch("shared", &options, &Patch::Apply(configuration)).await.map(drop)
        }
    })
    .await;
    assert_eq!(api.get("shared").await.unwrap().data.unwrap().len(), WRITERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn scales_go_through_beside_patches_of_the_object() {
    let api: Api<Deployment> = Api::default_namespaced(client().await);
    let deployment = json!({ "metadata": { "name": "shared" }, "spec": {
        "replicas": 0, "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a", "image": "b" }] } }
    }});
    api.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    all_at_once(|writer, turn| {
        let api = api.clone();
        async move {
            if writer % 2 == 0 {
                let scale = Patch::Merge(json!({ "spec": { "replicas": writer } }));
                return api.patch_scale("shared", &PatchParams::default(), &scale).await.map(drop);
            }
            let label = Patch::Merge(json!({ "metadata": { "labels": { format!("l{writer}"): turn.to_string() } } }));
            api.patch("shared", &PatchParams::default(), &label).await.map(drop)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_gets_through_a_crowd_of_patches() {
    for _ in 0..WRITES {
        let api = with_config_map().await;
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let api = api.clone();
            tasks.spawn(async move {
                for turn in 0.. {
                    let patch = Patch::Merge(json!({ "data": { format!("key{writer}"): turn.to_string() } }));
                    match api.patch("shared", &PatchParams::default(), &patch).await {
                        Ok(_) => {}
                        Err(kube::Error::Api(status)) if status.code == 404 => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        api.delete("shared", &DeleteParams::default()).await.unwrap();
        while let Some(result) = tasks.join_next().await {
            result.unwrap();
        }
    }
}
