//! Objects of older versions are stored anew, and only where that was asked for.

use std::sync::Arc;
use std::time::Duration;

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
use tokio::sync::Mutex;

use crate::cluster::Fixture;
use crate::wire::{self, Faults, Record, Sent};
use crate::{rights, trials};

trials![marked_definitions_leave_their_past_behind, a_past_that_others_hold_on_to_stays];

/// Who migrates, migrates the definitions of all.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

const PAGE: u32 = 2;
const OBJECTS: usize = 5;
/// How often an object is tried in one pass.
const ATTEMPTS: usize = 3;
/// How long it is until the next pass after one with conflicts.
const PAUSE: Duration = Duration::from_secs(30);

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

/// An operator that migrates. Definitions are in no namespace, so its rights are not either.
async fn migrator(fixture: &Fixture, faults: Faults) -> (Operator, Record) {
    let user = rights::everywhere(fixture).await;
    let (client, record) = wire::client(fixture.client.clone(), &user, &fixture.namespace, faults);
    let namespaces = vec![fixture.namespace.clone()];
    let settings = Settings { migration_page: Some(PAGE), namespaces, ..Settings::default() };
    let operator = Operator::start(client, &settings, Arc::default());
    operator.ready().await;
    (operator, record)
}

/// Objects that were sent as a whole.
fn rewrites(record: &Record) -> Vec<Sent> {
    record.writes().into_iter().filter(|sent| sent.method == http::Method::PUT).collect()
}

/// The event that tells of the end of a migration.
async fn success(fixture: &Fixture, definition: &str) -> Option<Event> {
    let events: Api<Event> = Api::all(fixture.client.clone());
    events.list(&ListParams::default()).await.unwrap().into_iter().find(|event| {
        let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
        event.reason.as_deref() == Some("StorageVersionMigrationSucceeded") && about == Some(definition)
    })
}

async fn marked_definitions_leave_their_past_behind(fixture: Fixture) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let marked = with_a_past(&fixture, "Relic", &json!({AUTO_MIGRATE_LABEL: "true"})).await;
    let unmarked = with_a_past(&fixture, "Idol", &json!({})).await;
    let (operator, record) = migrator(&fixture, Faults::none()).await;
    let api: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    fixture.eventually("one version", async || (stored(&api, &marked).await == ["v2"]).then_some(())).await;

    let rewritten: Vec<String> = rewrites(&record).into_iter().map(|sent| sent.path).collect();
    assert_eq!(rewritten.len(), OBJECTS, "each once: {rewritten:?}");
    assert!(rewritten.iter().all(|path| path.contains("/v2/") && path.contains("/relics/")), "{rewritten:?}");
    for object in objects(&fixture, "Relic", "v2").list(&ListParams::default()).await.unwrap() {
        assert_eq!(format!("o{}", object.data["spec"]["number"]), object.name_any());
    }
    let lists = "skep_operator_api_requests_total{verb=\"list\",resource=\"relics\",code=\"200\"} 3";
    assert!(operator.metrics().text().contains(lists), "{}", operator.metrics().text());
    let trimmed = record.writes_to(&format!("/{marked}/status"));
    assert!(trimmed[0].body["metadata"]["resourceVersion"].is_string(), "{trimmed:?}");

    fixture.eventually("an event", async || success(&fixture, &marked).await).await;
    assert_eq!(stored(&api, &unmarked).await, ["v1", "v2"], "nobody asked for this one");
}

/// T-38: as long as others change the objects all the time, nothing is trimmed and nothing is told.
async fn a_past_that_others_hold_on_to_stays(fixture: Fixture) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let contested = with_a_past(&fixture, "Fossil", &json!({AUTO_MIGRATE_LABEL: "true"})).await;
    let faults = Faults::none();
    faults.contest("/fossils/");
    let (_operator, record) = migrator(&fixture, faults.clone()).await;
    let attempts = OBJECTS * ATTEMPTS;
    let passed = async || {
        let tries = rewrites(&record);
        (tries.len() >= attempts && tries.iter().all(|sent| sent.code.is_some())).then_some(())
    };
    fixture.eventually("a pass in vain", passed).await;
    faults.end();
    let api: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    assert_eq!(stored(&api, &contested).await, ["v1", "v2"]);
    assert!(success(&fixture, &contested).await.is_none());

    // The next pass is on its own account, and not before its time.
    fixture.eventually("one version", async || (stored(&api, &contested).await == ["v2"]).then_some(())).await;
    fixture.eventually("an event", async || success(&fixture, &contested).await).await;
    let tries = rewrites(&record);
    assert_eq!(tries.len(), attempts + OBJECTS, "{tries:?}");
    let (in_vain, after) = tries.split_at(attempts);
    assert!(in_vain.iter().all(|sent| sent.code == Some(409)), "{in_vain:?}");
    assert!(after[0].at - in_vain[attempts - 1].at >= PAUSE, "{tries:?}");
    let cuts = record.writes_to(&format!("/{contested}/status"));
    assert!(cuts.iter().all(|cut| cut.at > after[OBJECTS - 1].at), "{cuts:?}");
}
