//! The server through the eyes of a kube client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::json;
use skep_api::kinds::{MCPGroup, MCPServer};
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

async fn server() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client()
}

async fn with_kinds() -> Client {
    let client = server().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for entry in skep_api::crd::ALL {
        let name = entry.definition.crd_name();
        definitions.patch(&name, &PatchParams::apply("tests"), &Patch::Apply(entry.document())).await.unwrap();
        let established = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(10), established).await.unwrap().unwrap();
    }
    client
}

#[tokio::test]
async fn the_usual_namespaces_are_there() {
    let namespaces = Api::<Namespace>::all(server().await).list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = namespaces.items.into_iter().map(|namespace| namespace.metadata.name.unwrap()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
}

#[tokio::test]
async fn a_built_in_object_lives_through_create_patch_and_delete() {
    let maps: Api<ConfigMap> = Api::default_namespaced(server().await);
    let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "a" }, "data": { "x": "1" } })).unwrap();
    let created = maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.resource_version.is_some());
    let patched =
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "data": { "y": "2" } }))).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn custom_resources_are_defaulted_validated_and_watched() {
    let client = with_kinds().await;
    let servers: Api<MCPServer> = Api::default_namespaced(client.clone());
    let before = servers.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut object = MCPServer::default();
    object.metadata.name = Some("fetch".into());
    object.spec.image = "example.com/fetch".into();
    let created = servers.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!((created.spec.proxy_port, created.metadata.generation), (8080, Some(1)));

    let error = servers
        .patch("fetch", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "proxyPort": 99999 } })))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("spec.proxyPort"), "{error}");

    let scaled = json!({ "spec": { "replicas": 2 } });
    let patched = servers.patch("fetch", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    let again = servers.patch("fetch", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
    assert_eq!(again.metadata.resource_version, patched.metadata.resource_version, "a write without effect is none");

    let mut events = servers.watch(&WatchParams::default(), &before).await.unwrap().boxed();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(_) => seen.push("added"),
            WatchEvent::Modified(_) => seen.push("modified"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["added", "modified"]);
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let groups: Api<MCPGroup> = Api::default_namespaced(with_kinds().await);
    let group: MCPGroup =
        serde_json::from_value(json!({ "metadata": { "name": "g" }, "status": { "phase": "Ready" } })).unwrap();
    let created = groups.create(&PostParams::default(), &group).await.unwrap();
    assert_eq!(created.status, None);
    let status = json!({ "status": { "phase": "Ready", "serverCount": 3 }, "spec": { "description": "no" } });
    let patched = groups.patch_status("g", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    assert_eq!(patched.status.unwrap().server_count, Some(3));
    assert_eq!((patched.spec.description, patched.metadata.generation), (None, Some(1)));
}

#[tokio::test]
async fn two_appliers_conflict_and_force_settles_it() {
    let servers: Api<MCPServer> = Api::default_namespaced(with_kinds().await);
    let configuration = |replicas: i32| {
        json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
            "metadata": { "name": "s" }, "spec": { "image": "example.com/s", "replicas": replicas },
        })
    };
    servers.patch("s", &PatchParams::apply("one"), &Patch::Apply(configuration(1))).await.unwrap();
    let error = servers.patch("s", &PatchParams::apply("two"), &Patch::Apply(configuration(2))).await.unwrap_err();
    assert!(error.to_string().contains("conflict with \"one\""), "{error}");
    let forced = servers.patch("s", &PatchParams::apply("two").force(), &Patch::Apply(configuration(2))).await.unwrap();
    assert_eq!(forced.spec.replicas, Some(2));
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_one_goes() {
    let groups: Api<MCPGroup> = Api::default_namespaced(with_kinds().await);
    let mut group = MCPGroup::default();
    group.metadata.name = Some("held".into());
    group.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    groups.create(&PostParams::default(), &group).await.unwrap();
    groups.delete("held", &DeleteParams::default()).await.unwrap();
    assert!(groups.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    let release = json!({ "metadata": { "finalizers": null } });
    groups.patch("held", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    assert!(groups.get_opt("held").await.unwrap().is_none());
}
