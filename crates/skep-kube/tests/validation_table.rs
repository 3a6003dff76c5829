//! The validation table (`conformance/validation`) through pruning, defaulting and validation, and the same objects on
//! a real server: verdicts must agree with the table, and refusals with the server's to the last word.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_api::crd::{self, Entry};
use skep_api::kind::GROUP;
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::validation::{self, Table, mutations};
use skep_kube::schema::{CompiledSchema, Scale, Schema, apply_defaults, prune, structural, validate, validate_status};
use skep_kube::status::{ApiError, Cause, FieldError, ResourceName};
use tokio::task::JoinSet;

/// Requests under way at once.
const PARALLEL: usize = 8;

/// An object to try.
struct Trial {
    label: String,
    parts: Value,
    valid: bool,
}

/// One kind with all objects of its table.
struct Kind {
    entry: &'static Entry,
    schema: CompiledSchema,
    trials: Vec<Trial>,
}

fn kinds() -> Vec<Kind> {
    validation::load().unwrap().iter().map(Kind::new).collect()
}

impl Kind {
    fn new(table: &Table) -> Self {
        let entry = crd::ALL.iter().find(|entry| entry.definition.kind == table.kind).unwrap();
        let version = entry.document().pointer("/spec/versions/0").unwrap().clone();
        let document = version.pointer("/schema/openAPIV3Schema").unwrap().clone();
        let scale = Scale::read(&version["subresources"]["scale"]);
        let schema = CompiledSchema::new(Arc::new(Schema::read(&document))).with_scale(scale);
        Self { entry, schema, trials: trials(table, &document) }
    }

    fn object(&self, parts: &Value, name: &str) -> Value {
        let mut object = parts.clone();
        object["apiVersion"] = format!("{GROUP}/{}", self.entry.definition.storage_version()).into();
        object["kind"] = self.entry.definition.kind.into();
        object["metadata"] = json!({ "name": name });
        object
    }

    fn prepared(&self, mut object: Value) -> Value {
        prune(self.schema.schema(), &mut object);
        apply_defaults(self.schema.schema(), &mut object);
        object
    }

    /// What is wrong with an object that is created. Its status is not looked at, because there is a subresource for it.
    fn refusal_of_create(&self, parts: &Value) -> Vec<FieldError> {
        let mut object = self.object(parts, "trial");
        object.as_object_mut().unwrap().remove("status");
        validate(&self.schema, &self.prepared(object), None)
    }

    /// What is wrong with a status that is written to an object without a spec.
    fn refusal_of_status(&self, parts: &Value) -> Vec<FieldError> {
        let Some(status) = parts.get("status") else {
            return Vec::new();
        };
        let old = self.prepared(self.object(&json!({}), "carrier"));
        let mut new = old.clone();
        new["status"] = status.clone();
        validate_status(&self.schema, &self.prepared(new), &old)
    }
}

fn trials(table: &Table, schema: &Value) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut seen = BTreeSet::new();
    for base in &table.bases {
        let label = format!("{} base {}", table.kind, base.name);
        for mutation in mutations::of(schema, &base.object()) {
            if seen.insert((mutation.place.clone(), mutation.keyword, mutation.valid)) {
                let label = format!("{label} with {} at {}", mutation.keyword, mutation.place);
                trials.push(Trial { label, parts: mutation.object, valid: mutation.valid });
            }
        }
        trials.push(Trial { label, parts: base.object(), valid: true });
    }
    for case in &table.cases {
        let label = format!("{} case {}", table.kind, case.name);
        trials.push(Trial { label, parts: table.object(case), valid: case.rejects.is_empty() });
    }
    trials
}

#[test]
fn every_object_of_the_table_gets_its_verdict() {
    let (mut count, mut problems) = (0, Vec::new());
    for kind in kinds() {
        for trial in &kind.trials {
            count += 1;
            let mut errors = kind.refusal_of_create(&trial.parts);
            errors.extend(kind.refusal_of_status(&trial.parts));
            if errors.is_empty() != trial.valid {
                problems.push(format!("{}: valid is {}, found {errors:?}", trial.label, trial.valid));
            }
        }
    }
    assert!(count > 2_500, "only {count} objects");
    assert!(problems.is_empty(), "{} of {count}:\n{}", problems.len(), problems.join("\n"));
}

/// The real server accepts all of them, so a rule that is refused here is a mistake of the check.
#[test]
fn every_definition_is_accepted() {
    for entry in crd::ALL {
        let errors = structural::check(&entry.document(), None);
        assert!(errors.is_empty(), "{}: {errors:?}", entry.definition.kind);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_is_that_of_a_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("every_refusal_is_that_of_a_real_server").await else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    install(&client).await;
    let (mut compared, mut differences) = (0, Vec::new());
    for kind in kinds() {
        let kind = Arc::new(kind);
        let api = api(&client, kind.entry);
        let carrier = serde_json::from_value(kind.object(&json!({}), "carrier")).unwrap();
        api.create(&PostParams::default(), &carrier).await.unwrap();
        let mut tasks = JoinSet::new();
        for number in 0..kind.trials.len() {
            if tasks.len() >= PARALLEL {
                differences.extend(tasks.join_next().await.unwrap().unwrap());
            }
            compared += 1;
            tasks.spawn(compare(kind.clone(), api.clone(), number));
        }
        while let Some(found) = tasks.join_next().await {
            differences.extend(found.unwrap());
        }
    }
    let shown = differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {compared} differ:\n{shown}", differences.len());
}

/// How our refusals of one object differ from the server's.
async fn compare(kind: Arc<Kind>, api: Api<DynamicObject>, number: usize) -> Vec<String> {
    let trial = &kind.trials[number];
    let object = serde_json::from_value(kind.object(&trial.parts, "trial")).unwrap();
    let created = api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await;
    let mut pairs = vec![("create", told(&kind.refusal_of_create(&trial.parts)), real(created))];
    if let Some(status) = trial.parts.get("status") {
        let patch = Patch::Merge(json!({ "status": status }));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let patched = api.patch_status("carrier", &dry_run, &patch).await;
        pairs.push(("status", told(&kind.refusal_of_status(&trial.parts)), real(patched)));
    }
    pairs
        .into_iter()
        .filter(|(_, ours, theirs)| ours != theirs)
        .map(|(request, ours, theirs)| {
            let only = |one: &[String], other: &[String]| {
                one.iter().filter(|cause| !other.contains(cause)).cloned().collect::<Vec<_>>()
            };
            let (extra, missing) = (only(&ours, &theirs), only(&theirs, &ours));
            format!("{} ({request})\n  ours only: {extra:?}\n  theirs only: {missing:?}", trial.label)
        })
        .collect()
}

/// Our causes, in an order that does not depend on the order of members, which is random on the server.
fn told(errors: &[FieldError]) -> Vec<String> {
    let cause =
        |cause: &Cause| format!("{} {} {}", cause.field.as_deref().unwrap_or_default(), cause.reason, cause.message);
    let error = ApiError::invalid(&ResourceName::default(), "", errors);
    let mut causes: Vec<String> = error.causes.iter().map(cause).collect();
    causes.sort();
    causes
}

fn real(answer: kube::Result<DynamicObject>) -> Vec<String> {
    match answer {
        Ok(_) => Vec::new(),
        Err(kube::Error::Api(status)) => {
            let details = status.details.unwrap_or_else(|| panic!("{}", status.message));
            let mut causes: Vec<String> = details
                .causes
                .into_iter()
                .map(|cause| format!("{} {} {}", cause.field, cause.reason, cause.message))
                .collect();
            causes.sort();
            causes
        }
        Err(error) => panic!("{error}"),
    }
}

fn api(client: &Client, entry: &Entry) -> Api<DynamicObject> {
    let definition = entry.definition;
    let version = definition.storage_version();
    let resource = ApiResource {
        group: GROUP.into(),
        version: version.into(),
        api_version: format!("{GROUP}/{version}"),
        kind: definition.kind.into(),
        plural: definition.plural.into(),
    };
    Api::default_namespaced_with(client.clone(), &resource)
}

/// Installs every CRD and waits until all are served.
async fn install(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for entry in crd::ALL {
        let patch = Patch::Apply(entry.document());
        let parameters = PatchParams::apply("skep-tests");
        definitions.patch(&entry.definition.crd_name(), &parameters, &patch).await.unwrap();
    }
    for entry in crd::ALL {
        let mut attempts = 0;
        while api(client, entry).list(&ListParams::default()).await.is_err() {
            attempts += 1;
            assert!(attempts < 200, "{} was not served within ten seconds", entry.definition.kind);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}
