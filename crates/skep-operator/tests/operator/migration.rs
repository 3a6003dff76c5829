//! Objects of older versions are stored anew, and only where that was asked for.

use std::sync::Arc;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::crd::AUTO_MIGRATE_LABEL;
use skep_api::kind::GROUP;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::Fixture;
use crate::wire::{self, Faults};
use crate::{rights, trials};

trials![marked_definitions_leave_their_past_behind];

const PAGE: u32 = 2;
const OBJECTS: usize = 5;

/// A definition that stores one of its two versions.
fn definition(kind: &str, storage: &str, labels: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage, "schema": schema});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"), "labels": labels},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [version("v1"), version("v2")]}})
}

/// A kind with objects of its first version that stores its second one now.
async fn with_a_past(fixture: &Fixture, kind: &str, labels: &Value) -> String {
    let api: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let params = PatchParams::apply("test").force();
    let past = definition(kind, "v1", labels);
    let name = past["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &params, &Patch::Apply(&past)).await.unwrap();
    await_condition(api.clone(), &name, conditions::is_crd_established()).await.unwrap();
    let objects = objects(fixture, kind, "v1");
    for number in 0..OBJECTS {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": {"name": format!("o{number}")}, "spec": {"number": number}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        fixture
            .eventually("a kind that is served", async || objects.create(&PostParams::default(), &object).await.ok())
            .await;
    }
    api.patch(&name, &params, &Patch::Apply(&definition(kind, "v2", labels))).await.unwrap();
    let two = async || (stored(&api, &name).await == ["v1", "v2"]).then_some(());
    fixture.eventually("two stored versions", two).await;
    name
}

fn objects(fixture: &Fixture, kind: &str, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    Api::namespaced_with(fixture.client.clone(), &fixture.namespace, &resource)
}

async fn stored(api: &Api<CustomResourceDefinition>, name: &str) -> Vec<String> {
    api.get(name).await.unwrap().status.and_then(|status| status.stored_versions).unwrap_or_default()
}

async fn marked_definitions_leave_their_past_behind(fixture: Fixture) {
    let marked = with_a_past(&fixture, "Relic", &json!({AUTO_MIGRATE_LABEL: "true"})).await;
    let unmarked = with_a_past(&fixture, "Idol", &json!({})).await;
    // Definitions are in no namespace.
    let user = rights::everywhere(&fixture).await;
    let (client, record) = wire::client(fixture.client.clone(), &user, &fixture.namespace, Faults::none());
    let namespaces = vec![fixture.namespace.clone()];
    let settings = Settings { migration_page: Some(PAGE), namespaces, ..Settings::default() };
    let operator = Operator::start(client, &settings, Arc::default());
    operator.ready().await;
    let api: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    fixture.eventually("one version", async || (stored(&api, &marked).await == ["v2"]).then_some(())).await;

    let rewritten = record.writes().into_iter().filter(|sent| sent.method == http::Method::PUT);
    let rewritten: Vec<String> = rewritten.map(|sent| sent.path).collect();
    assert_eq!(rewritten.len(), OBJECTS, "each once: {rewritten:?}");
    assert!(rewritten.iter().all(|path| path.contains("/v2/") && path.contains("/relics/")), "{rewritten:?}");
    for object in objects(&fixture, "Relic", "v2").list(&ListParams::default()).await.unwrap() {
        assert_eq!(format!("o{}", object.data["spec"]["number"]), object.name_any());
    }
    let lists = "skep_operator_api_requests_total{verb=\"list\",resource=\"relics\",code=\"200\"} 3";
    assert!(operator.metrics().text().contains(lists), "{}", operator.metrics().text());
    let trimmed = record.writes_to(&format!("/{marked}/status"));
    assert!(trimmed[0].body["metadata"]["resourceVersion"].is_string(), "{trimmed:?}");

    let events: Api<Event> = Api::all(fixture.client.clone());
    let told = async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.into_iter().find(|event| event.reason.as_deref() == Some("StorageVersionMigrationSucceeded"))
    };
    fixture.eventually("an event", told).await;
    assert_eq!(stored(&api, &unmarked).await, ["v1", "v2"], "nobody asked for this one");
}
