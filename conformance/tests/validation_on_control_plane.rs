//! The validation table against our CRDs on a real kube-apiserver.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_api::crd::{self, Entry};
use skep_api::kind::GROUP;
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::validation::{self, Table, mutations};
use tokio::task::JoinSet;

/// Requests under way at once.
const PARALLEL: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_constraint_and_rule_holds_on_a_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("every_constraint_and_rule_holds_on_a_real_server").await
    else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    install(&client).await;
    let mut problems = Vec::new();
    for table in validation::load().unwrap() {
        let entry = crd::ALL.iter().find(|entry| entry.definition.kind == table.kind).unwrap();
        problems.extend(Bench::new(&client, entry).try_table(&table).await);
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// Installs every CRD as a user would, by server-side apply, and waits until all are served.
async fn install(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for entry in crd::ALL {
        let name = entry.definition.crd_name();
        let patch = Patch::Apply(entry.document());
        definitions.patch(&name, &PatchParams::apply("skep-tests"), &patch).await.unwrap_or_else(|error| {
            panic!("{name}: {error}");
        });
    }
    for entry in crd::ALL {
        wait_until_established(&definitions, &entry.definition.crd_name()).await;
    }
}

async fn wait_until_established(definitions: &Api<CustomResourceDefinition>, name: &str) {
    for _ in 0..200 {
        let definition = definitions.get(name).await.unwrap();
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        let holds =
            |type_: &str| conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True");
        if let Some(problem) = conditions.iter().find(|condition| condition.type_ == "NonStructuralSchema") {
            panic!("{name} is not structural: {problem:?}");
        }
        if holds("Established") && holds("NamesAccepted") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{name} was not established within ten seconds");
}

/// An object to try, and what must become of it.
struct Trial {
    label: String,
    object: Value,
    expected: Expected,
}

enum Expected {
    Accepted,
    /// Refused, with at least one cause at or below this field.
    RefusedAt(String),
    /// Refused by exactly these rules: place and text of the message.
    RefusedBy(BTreeSet<(String, String)>),
}

#[derive(Clone)]
struct Bench {
    api: Api<DynamicObject>,
    kind: &'static str,
    api_version: String,
}

impl Bench {
    fn new(client: &Client, entry: &Entry) -> Self {
        let definition = entry.definition;
        let version = definition.storage_version();
        let api_version = format!("{GROUP}/{version}");
        let resource = ApiResource {
            group: GROUP.into(),
            version: version.into(),
            api_version: api_version.clone(),
            kind: definition.kind.into(),
            plural: definition.plural.into(),
        };
        Self { api: Api::default_namespaced_with(client.clone(), &resource), kind: definition.kind, api_version }
    }

    /// Tries everything and returns what did not go as it should.
    async fn try_table(&self, table: &Table) -> Vec<String> {
        let schema = crd::ALL
            .iter()
            .find(|entry| entry.definition.kind == self.kind)
            .map(|entry| entry.document().pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone())
            .unwrap();
        let mut trials = Vec::new();
        let mut seen = BTreeSet::new();
        for base in &table.bases {
            let label = format!("{} base {}", self.kind, base.name);
            trials.push(Trial { label: label.clone(), object: base.object(), expected: Expected::Accepted });
            for mutation in mutations::of(&schema, &base.object()) {
                if seen.insert((mutation.place.clone(), mutation.keyword, mutation.valid)) {
                    let label = format!("{label} with {} at {}", mutation.keyword, mutation.place);
                    let expected =
                        if mutation.valid { Expected::Accepted } else { Expected::RefusedAt(mutation.field) };
                    trials.push(Trial { label, object: mutation.object, expected });
                }
            }
        }
        for case in &table.cases {
            let rules = case.rejects.iter().map(|rule| (rule.path.clone(), rule.text())).collect();
            let expected = if case.rejects.is_empty() { Expected::Accepted } else { Expected::RefusedBy(rules) };
            trials.push(Trial {
                label: format!("{} case {}", self.kind, case.name),
                object: table.object(case),
                expected,
            });
        }
        self.run(trials).await
    }

    async fn run(&self, trials: Vec<Trial>) -> Vec<String> {
        // Status can only be written to an object that exists.
        let mut carrier = self.object(&json!({}), "carrier");
        carrier.as_object_mut().unwrap().remove("spec");
        let carrier: DynamicObject = serde_json::from_value(carrier).unwrap();
        self.api.create(&PostParams::default(), &carrier).await.unwrap();

        let mut problems = Vec::new();
        let mut tasks = JoinSet::new();
        for trial in trials {
            if tasks.len() >= PARALLEL {
                problems.extend(tasks.join_next().await.and_then(Result::unwrap));
            }
            let bench = self.clone();
            tasks.spawn(async move {
                bench.try_one(&trial).await.err().map(|problem| format!("{}: {problem}", trial.label))
            });
        }
        while let Some(finished) = tasks.join_next().await {
            problems.extend(finished.unwrap());
        }
        problems
    }

    fn object(&self, parts: &Value, name: &str) -> Value {
        let mut object = parts.clone();
        object["apiVersion"] = self.api_version.clone().into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({ "name": name });
        object
    }

    async fn try_one(&self, trial: &Trial) -> Result<(), String> {
        let spec_answer = self.try_create(&trial.object).await?;
        let status_answer = self.try_status(&trial.object).await?;
        let refusal = spec_answer.or(status_answer);
        match (&trial.expected, refusal) {
            (Expected::Accepted, None) => Ok(()),
            (Expected::Accepted, Some(status)) => Err(format!("refused: {}", status.message)),
            (_, None) => Err("accepted".to_owned()),
            (Expected::RefusedAt(field), Some(status)) => {
                let named = causes(&status).iter().any(|(at, text)| is_at_or_below(at, field) || tells(text, field));
                if named { Ok(()) } else { Err(format!("refused, but not at {field}: {}", status.message)) }
            }
            (Expected::RefusedBy(rules), Some(status)) => same_rules(rules, &causes(&status)),
        }
    }

    /// Creates the object without keeping it. `None`: accepted.
    async fn try_create(&self, object: &Value) -> Result<Option<Status>, String> {
        let object: DynamicObject =
            serde_json::from_value(self.object(object, "trial")).map_err(|error| error.to_string())?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        refusal(self.api.create(&dry_run, &object).await)
    }

    async fn try_status(&self, object: &Value) -> Result<Option<Status>, String> {
        let Some(status) = object.get("status") else {
            return Ok(None);
        };
        let patch = Patch::Merge(json!({ "status": status }));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        refusal(self.api.patch_status("carrier", &dry_run, &patch).await)
    }
}

fn refusal(answer: kube::Result<DynamicObject>) -> Result<Option<Status>, String> {
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Some(*status)),
        Err(error) => Err(format!("neither accepted nor refused as invalid: {error}")),
    }
}

/// Field and text of each cause; the quotes around names of map entries are left out.
fn causes(status: &Status) -> Vec<(String, String)> {
    let details = status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
    details.into_iter().map(|cause| (cause.field.replace(['"', '\''], ""), cause.message)).collect()
}

fn is_at_or_below(found: &str, field: &str) -> bool {
    found.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Some problems are told at the root of the object or of its status, with the field in the text.
fn tells(text: &str, field: &str) -> bool {
    text.contains(field) || field.strip_prefix("status.").is_some_and(|field| text.ends_with(&format!(" in {field}")))
}

fn same_rules(expected: &BTreeSet<(String, String)>, causes: &[(String, String)]) -> Result<(), String> {
    let unexpected: Vec<_> = causes
        .iter()
        .filter(|(field, text)| {
            !expected.iter().any(|(place, message)| at(place, field) && text.contains(message.as_str()))
        })
        .collect();
    let silent: Vec<_> = expected
        .iter()
        .filter(|(place, message)| {
            !causes.iter().any(|(field, text)| at(place, field) && text.contains(message.as_str()))
        })
        .collect();
    if unexpected.is_empty() && silent.is_empty() {
        Ok(())
    } else {
        Err(format!("unexpected causes {unexpected:?}, rules that did not fire {silent:?}"))
    }
}

/// Whether a field such as `spec.tools[3]` is an instance of the place `spec.tools[]`.
fn at(place: &str, field: &str) -> bool {
    let mut general = String::new();
    let mut inside = false;
    for character in field.chars() {
        match character {
            '[' => {
                inside = true;
                general.push_str("[]");
            }
            ']' => inside = false,
            _ if !inside => general.push(character),
            _ => {}
        }
    }
    general == place
}
