//! The table in `tests/bad_manifests`, all of it in one namespace at once: each object is told what is wrong with it,
//! and none stops another.

mod table;

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;

use self::table::Case;
use crate::cluster::{Fixture, Kind, LOOSE};

/// Our own server takes no object that is nested more deeply than it reads; a real one does.
pub fn trials(kind: Kind) -> Vec<Trial> {
    let mut trials = both(kind);
    if kind == Kind::Real {
        trials.push(crate::trial(kind, "bad_manifests::a_deep_object_stops_nobody", a_deep_object_stops_nobody));
    }
    trials
}

fn both(kind: Kind) -> Vec<Trial> {
    vec![crate::trial(kind, "bad_manifests::each_is_told_and_stops_nobody", each_is_told_and_stops_nobody)]
}

/// The namespace that the messages name.
const NAMESPACE: &str = "bad";
/// How long it may take until all is told: less than a test may take, so that what is missing can still be said.
const TOLD_LIMIT: Duration = Duration::from_mins(4);

async fn each_is_told_and_stops_nobody(fixture: Fixture) {
    let fixture = fixture.sibling(NAMESPACE).await;
    for object in table::around() {
        fixture.api_of(&object).create(&PostParams::default(), &read(&object)).await.unwrap();
    }
    let (_operator, record) = fixture.operator().await;
    let bad = table::bad();
    assert!(bad.len() >= 60, "{}", bad.len());
    for case in &bad {
        fixture.store(case).await;
    }
    fixture.until_told(&bad).await;

    let good = table::good();
    for case in &good {
        fixture.store(case).await;
    }
    fixture.until_told(&good).await;
    for name in ["good-server", "good-proxy"] {
        fixture.until_child::<Deployment>(name, "there", |_| true).await;
    }
    fixture.until_child::<Service>("mcp-good-server-proxy", "there", |_| true).await;
    fixture.quiet(&record).await;

    for case in bad.iter().chain(&good) {
        fixture.api_of(&case.object()).delete(&case.name, &DeleteParams::default()).await.unwrap();
    }
    fixture.until_all_gone(bad.iter().chain(&good)).await;
}

async fn a_deep_object_stops_nobody(fixture: Fixture) {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let text = format!(
        r#"{{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {{"name": "deep"}},
            "spec": {{"image": "i", "podTemplateSpec": {deep}}}}}"#
    );
    let place = format!("/apis/toolhive.stacklok.dev/v1beta1/namespaces/{}/mcpservers", fixture.namespace);
    let request = http::Request::post(&place).header("content-type", "application/json").body(text.into_bytes());
    fixture.client.request_text(request.unwrap()).await.unwrap();
    // It is there when the operator starts, and while it runs.
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPServer>("good", json!({"image": "i"})).await;
    crate::servers::settled(&fixture, "good").await;
    let told = async || {
        let request = http::Request::get(format!("{place}/deep")).body(Vec::new()).unwrap();
        let text = fixture.client.request_text(request).await.unwrap();
        text.contains("cannot be read: spec.podTemplateSpec: nested deeper than 100 levels").then_some(())
    };
    fixture.eventually("a word about it", told).await;
    let request = http::Request::delete(format!("{place}/deep")).body(Vec::new()).unwrap();
    fixture.client.request_text(request).await.unwrap();
    let gone = async || {
        let request = http::Request::get(format!("{place}/deep")).body(Vec::new()).unwrap();
        matches!(fixture.client.request_text(request).await, Err(kube::Error::Api(status)) if status.code == 404)
            .then_some(())
    };
    fixture.eventually("the end of it", gone).await;
}

fn read(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

impl Fixture {
    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &table::resource(object))
    }

    /// Creates the object, past its schema if that refuses it in the words of the table.
    async fn store(&self, case: &Case) {
        let object = case.object();
        let answer = self.api_of(&object).create(&PostParams::default(), &read(&object)).await;
        match (&case.refused, answer) {
            (None, Ok(_)) => {}
            (Some(expected), Err(kube::Error::Api(refusal))) => {
                assert_eq!(&refusal.message, expected, "{} {}", case.kind, case.name);
                self.write_past_schema(case).await;
            }
            (_, answer) => panic!("{} {} was answered with {answer:?}", case.kind, case.name),
        }
        if let Some(status) = &case.status {
            let api = self.api_of(&case.object_in(LOOSE));
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&case.name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    async fn write_past_schema(&self, case: &Case) {
        let object = case.object_in(LOOSE);
        let params = PatchParams::apply("loose").force();
        self.api_of(&object).patch(&case.name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Waits until every object says what the table says.
    async fn until_told(&self, cases: &[Case]) {
        let mut waiting: Vec<&Case> = cases.iter().collect();
        let begun = Instant::now();
        loop {
            let mut wrong = Vec::new();
            let warnings = self.warnings().await;
            for case in std::mem::take(&mut waiting) {
                let found = self.api_of(&case.object()).get(&case.name).await.unwrap();
                let differences = case.differences(&serde_json::to_value(found).unwrap(), &warnings);
                if !differences.is_empty() {
                    waiting.push(case);
                    wrong.extend(differences);
                }
            }
            if waiting.is_empty() {
                return;
            }
            let (told, all) = (cases.len() - waiting.len(), cases.len());
            assert!(
                begun.elapsed() < TOLD_LIMIT,
                "{told} of {all} are told after {TOLD_LIMIT:?}; {} differences:\n{}",
                wrong.len(),
                wrong.join("\n")
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The warnings so far, each with the name of its object.
    async fn warnings(&self) -> Vec<(String, String)> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = api.list(&ListParams::default()).await.unwrap().items.into_iter();
        events
            .filter(|event| event.type_.as_deref() == Some("Warning"))
            .map(|event| {
                (event.regarding.and_then(|about| about.name).unwrap_or_default(), event.note.unwrap_or_default())
            })
            .collect()
    }

    async fn until_all_gone(&self, cases: impl Iterator<Item = &Case>) {
        for case in cases {
            let api = self.api_of(&case.object());
            let gone = async || api.get_opt(&case.name).await.unwrap().is_none().then_some(());
            self.eventually(&format!("nothing left of {} {}", case.kind, case.name), gone).await;
        }
    }
}
