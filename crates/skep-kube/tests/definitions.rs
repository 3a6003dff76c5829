//! The life of custom resource definitions, through the eyes of a kube client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

const LIMIT: Duration = Duration::from_secs(10);

async fn on(store: &Store) -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(store.clone(), tokens, "127.0.0.1:0").await.unwrap().client()
}

async fn server() -> Client {
    on(&Store::open(None).unwrap()).await
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": { "type": "object", "properties": {
                    "size": { "type": "integer" } } } } } } }],
        },
    })
}

async fn define(client: &Client, document: &Value) -> String {
    let definitions = definitions(client);
    let document: CustomResourceDefinition = serde_json::from_value(document.clone()).unwrap();
    let name = document.metadata.name.clone().unwrap();
    definitions.create(&PostParams::default(), &document).await.unwrap();
    name
}

async fn established(client: &Client, name: &str) {
    let wait = await_condition(definitions(client), name, conditions::is_crd_established());
    tokio::time::timeout(LIMIT, wait).await.unwrap().unwrap();
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

fn objects(client: &Client, plural: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", kind), plural);
    Api::default_namespaced_with(client.clone(), &resource)
}

fn object(kind: &str, name: &str) -> DynamicObject {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind));
    DynamicObject::new(name, &resource).data(json!({ "spec": { "size": 1 } }))
}

/// The reason of a condition, if it is there.
async fn reason(client: &Client, name: &str, type_: &str) -> Option<String> {
    let definition = definitions(client).get(name).await.unwrap();
    let conditions = definition.status?.conditions?;
    conditions.into_iter().find(|condition| condition.type_ == type_)?.reason
}

async fn eventually<Check: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> Check) {
    let holds = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, holds).await.unwrap_or_else(|_| panic!("{what}, which never came to be"));
}

async fn gone(client: &Client, name: &str) {
    eventually("the definition is gone", || async { definitions(client).get_opt(name).await.unwrap().is_none() }).await;
}

#[tokio::test]
async fn a_definition_waits_for_objects_with_finalizers_and_then_goes_with_its_watches() {
    let client = server().await;
    let name = define(&client, &definition("things", "Thing")).await;
    established(&client, &name).await;
    let things = objects(&client, "things", "Thing");
    things.create(&PostParams::default(), &object("Thing", "free")).await.unwrap();
    let mut held = object("Thing", "held");
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    things.create(&PostParams::default(), &held).await.unwrap();
    let since = things.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = things.watch(&kube::api::WatchParams::default(), &since).await.unwrap().boxed();

    definitions(&client).delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("the free object is gone", || async { things.get_opt("free").await.unwrap().is_none() }).await;
    eventually("the held object is to go", || async {
        things.get("held").await.unwrap().metadata.deletion_timestamp.is_some()
    })
    .await;
    assert_eq!(reason(&client, &name, "Terminating").await.unwrap(), "InstanceDeletionInProgress");
    let error = things.create(&PostParams::default(), &object("Thing", "late")).await.unwrap_err().to_string();
    assert!(error.contains("create not allowed while custom resource definition is terminating"), "{error}");

    let release = json!({ "metadata": { "finalizers": null } });
    things.patch("held", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    gone(&client, &name).await;
    let mut seen = Vec::new();
    while let Some(event) = tokio::time::timeout(LIMIT, events.try_next()).await.unwrap().unwrap() {
        match event {
            WatchEvent::Modified(object) => seen.push(format!("modified {}", object.metadata.name.unwrap())),
            WatchEvent::Deleted(object) => seen.push(format!("deleted {}", object.metadata.name.unwrap())),
            other => panic!("{other:?}"),
        }
    }
    seen.sort();
    assert_eq!(seen, ["deleted free", "deleted held", "modified held"]);
    assert!(client.list_api_groups().await.unwrap().groups.iter().all(|group| group.name != "example.com"));

    let name = define(&client, &definition("things", "Thing")).await;
    established(&client, &name).await;
    assert!(things.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn names_that_were_taken_are_given_when_they_are_free_again() {
    let client = server().await;
    let first = define(&client, &definition("things", "Thing")).await;
    established(&client, &first).await;
    let second = define(&client, &definition("others", "Thing")).await;
    eventually("the conflict is told", || async {
        reason(&client, &second, "NamesAccepted").await.as_deref() == Some("ListKindConflict")
    })
    .await;
    let refused = objects(&client, "others", "Thing").list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("404"), "{refused}");
    definitions(&client).delete(&first, &DeleteParams::default()).await.unwrap();
    established(&client, &second).await;
    objects(&client, "others", "Thing").create(&PostParams::default(), &object("Thing", "a")).await.unwrap();
    definitions(&client).delete(&second, &DeleteParams::default()).await.unwrap();
    gone(&client, &second).await;
}

#[tokio::test]
async fn a_deletion_goes_on_when_the_server_starts_again() {
    let store = Store::open(None).unwrap();
    let client = on(&store).await;
    let name = define(&client, &definition("things", "Thing")).await;
    established(&client, &name).await;
    let things = objects(&client, "things", "Thing");
    let mut held = object("Thing", "held");
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    things.create(&PostParams::default(), &held).await.unwrap();
    definitions(&client).delete(&name, &DeleteParams::default()).await.unwrap();
    drop((things, client));

    let client = on(&store).await;
    let release = json!({ "metadata": { "finalizers": null } });
    eventually("the object is marked", || async {
        objects(&client, "things", "Thing").get("held").await.unwrap().metadata.deletion_timestamp.is_some()
    })
    .await;
    objects(&client, "things", "Thing").patch("held", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    gone(&client, &name).await;
}

#[tokio::test]
async fn watches_end_with_the_schema_and_begin_again_with_the_new_one() {
    let client = server().await;
    let name = define(&client, &definition("things", "Thing")).await;
    established(&client, &name).await;
    let things = objects(&client, "things", "Thing");
    let old = things.create(&PostParams::default(), &object("Thing", "old")).await.unwrap();
    let since = old.metadata.resource_version.unwrap();
    let mut before = things.watch(&kube::api::WatchParams::default(), &since).await.unwrap().boxed();
    let patch = json!([
        { "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties",
          "value": { "colour": { "type": "string", "default": "red" } } },
    ]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
    definitions(&client).patch(&name, &PatchParams::default(), &patch).await.unwrap();
    assert!(tokio::time::timeout(LIMIT, before.try_next()).await.unwrap().unwrap().is_none());

    let expected = json!({ "colour": "red" });
    assert_eq!(things.get("old").await.unwrap().data["spec"], expected);
    assert_eq!(things.list(&ListParams::default()).await.unwrap().items[0].data["spec"], expected);
    let mut after = things.watch(&kube::api::WatchParams::default(), "0").await.unwrap().boxed();
    match tokio::time::timeout(LIMIT, after.try_next()).await.unwrap().unwrap() {
        Some(WatchEvent::Added(object)) => assert_eq!(object.data["spec"], expected),
        other => panic!("{other:?}"),
    }
}
