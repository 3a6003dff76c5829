//! Server-side apply and managed fields, compared with a real server: random sequences of writes by several managers
//! must give the same object, the same managed fields and the same errors after every step.
//!
//! `SKEP_APPLY_SEQUENCES` runs more of them, `SKEP_APPLY_SEED` others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "apply/dice.rs"]
mod dice;
#[path = "apply/real.rs"]
mod real;

use dice::Dice;
use kube::Client;
use real::{Answer, send};
use serde_json::{Map, Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::apply::{ApplyError, Ownable, Target, apply, keep_times, update};
use skep_kube::schema::Schema;
use skep_kube::status::ApiError;

const API_VERSION: &str = "apply.test/v1";
const COLLECTION: &str = "/apis/apply.test/v1/namespaces/default/shapes";
const MANAGERS: [&str; 3] = ["one", "two", "three"];
const STEPS: usize = 12;
const DEFAULT_SEQUENCES: u64 = 60;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_of_writes_give_what_the_real_server_gives() {
    let Some(control_plane) = ControlPlane::start_or_skip("sequences_of_writes_give_what_the_real_server_gives").await
    else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    let definition: Value = serde_json::from_str(include_str!("apply/shapes.json")).unwrap();
    install(&client, &definition, COLLECTION).await;
    let schema = Schema::read(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);

    let first = number_from("SKEP_APPLY_SEED").unwrap_or(1);
    let count = number_from("SKEP_APPLY_SEQUENCES").unwrap_or(DEFAULT_SEQUENCES);
    let mut tally = Tally::default();
    for seed in first..first + count {
        // Times are told to the second. One sequence is so slow that they differ from step to step.
        let slow = seed == first;
        let mut sequence = Sequence::new(&client, &schema, seed, slow);
        for step in 0..STEPS {
            sequence.step(step, &mut tally).await;
            if slow {
                tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
            }
        }
    }
    // The sequences are worth something only if they reach all of these.
    println!("{tally:?}");
    assert!(tally.succeeded > tally.conflicts && tally.conflicts > 0 && tally.invalid > 0, "{tally:?}");
}

/// Installs a CRD and waits until it is served under `path`.
async fn install(client: &Client, definition: &Value, path: &str) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = send(client, "POST", definitions, "application/json", definition).await;
    assert!(answer.is_success(), "{answer:?}");
    for _ in 0..200 {
        if send(client, "GET", path, "application/json", &Value::Null).await.is_success() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{path} is not served");
}

#[derive(Debug, Default)]
struct Tally {
    succeeded: u32,
    conflicts: u32,
    invalid: u32,
}

/// One object, here and there.
struct Sequence<'a> {
    client: &'a Client,
    schema: &'a Schema,
    dice: Dice,
    name: String,
    live: Option<Value>,
    /// Whether no two steps happen in the same second.
    slow: bool,
}

/// A write to be done on both sides.
#[derive(Debug)]
struct Write {
    kind: Kind,
    manager: &'static str,
    status: bool,
    body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Create,
    Apply { force: bool },
    Update,
    MergePatch,
}

impl<'a> Sequence<'a> {
    fn new(client: &'a Client, schema: &'a Schema, seed: u64, slow: bool) -> Self {
        Self { client, schema, dice: Dice(seed), name: format!("shape-{seed}"), live: None, slow }
    }

    async fn step(&mut self, step: usize, tally: &mut Tally) {
        let write = self.choose();
        let answer = self.send(&write).await;
        let context =
            || format!("{} step {step}: {write:#?}\nlive: {:#}", self.name, self.live.clone().unwrap_or_default());
        let ours = self.perform(&write, &answer);
        match (ours, answer.code) {
            (Ok(ours), 200 | 201) => {
                tally.succeeded += 1;
                assert_same(&ours, &answer.document, &context);
                self.live = Some(answer.document);
            }
            (Ok(ours), 422) => {
                tally.invalid += 1;
                assert_invalid_alike(&ours, &answer.document, &context);
            }
            (Err(error), 409) => {
                tally.conflicts += 1;
                assert_same_error(error, &answer.document, &context);
            }
            (ours, code) => panic!("{}\n{code}: {:#}\nours: {ours:#?}", context(), answer.document),
        }
    }

    fn choose(&mut self) -> Write {
        let manager = self.dice.pick(&MANAGERS);
        let Some(live) = self.live.clone() else {
            let kind = if self.dice.one_in(2) { Kind::Create } else { Kind::Apply { force: false } };
            return Write { kind, manager, status: false, body: self.object() };
        };
        let status = self.dice.one_in(8);
        let (kind, body) = match self.dice.below(10) {
            0..=5 => (Kind::Apply { force: self.dice.one_in(3) }, self.object()),
            6 | 7 => (Kind::Update, self.replacement(&live)),
            _ => (Kind::MergePatch, self.patch(&live)),
        };
        Write { kind, manager, status, body }
    }

    fn replacement(&mut self, live: &Value) -> Value {
        let mut body = self.object();
        let mut metadata = self.dice.metadata();
        for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.insert(name.to_owned(), live["metadata"][name].clone());
        }
        let managed_fields = match self.dice.below(24) {
            0 => json!([{}]),
            1 => json!([]),
            2..=12 => live["metadata"]["managedFields"].clone(),
            _ => Value::Null,
        };
        if !managed_fields.is_null() {
            metadata.insert("managedFields".to_owned(), managed_fields);
        }
        body["metadata"] = Value::Object(metadata);
        // Sometimes all is replaced, more often something.
        if let (false, Some(spec)) = (self.dice.one_in(4), live["spec"].as_object()) {
            let mut spec = spec.clone();
            spec.extend(body["spec"].as_object().cloned().unwrap_or_default());
            body["spec"] = Value::Object(spec);
        }
        body
    }

    fn patch(&mut self, live: &Value) -> Value {
        let mut body = json!({ "metadata": self.dice.metadata(), "spec": self.dice.spec() });
        if self.dice.one_in(2) {
            body["status"] = self.dice.status();
        }
        for (name, _) in live["spec"].as_object().into_iter().flatten() {
            if self.dice.one_in(8) {
                body["spec"][name] = Value::Null;
            }
        }
        body
    }

    fn object(&mut self) -> Value {
        let mut metadata = self.dice.metadata();
        metadata.insert("name".to_owned(), self.name.clone().into());
        let mut object =
            json!({ "apiVersion": API_VERSION, "kind": "Shape", "metadata": metadata, "spec": self.dice.spec() });
        if self.dice.one_in(4) {
            object["status"] = self.dice.status();
        }
        object
    }

    async fn send(&self, write: &Write) -> Answer {
        let (name, manager) = (&self.name, write.manager);
        let subresource = if write.status { "/status" } else { "" };
        let object = format!("{COLLECTION}/{name}{subresource}?fieldManager={manager}");
        match write.kind {
            Kind::Create => {
                let path = format!("{COLLECTION}?fieldManager={manager}");
                send(self.client, "POST", &path, "application/json", &write.body).await
            }
            Kind::Apply { force } => {
                let path = format!("{object}&force={force}");
                send(self.client, "PATCH", &path, "application/apply-patch+yaml", &write.body).await
            }
            Kind::Update => send(self.client, "PUT", &object, "application/json", &write.body).await,
            Kind::MergePatch => send(self.client, "PATCH", &object, "application/merge-patch+json", &write.body).await,
        }
    }

    /// The time at which the server has written: the newest in its answer, since time does not run backwards. When
    /// the answer has no new time, a time that would be noticed.
    fn time_of(&self, answer: &Answer) -> String {
        let newest = newest_time(&answer.document);
        let before = self.live.as_ref().and_then(newest_time);
        newest
            .filter(|newest| !self.slow || before.as_ref() < Some(newest))
            .unwrap_or_else(|| "2100-01-01T00:00:00Z".to_owned())
    }

    /// The same write by the functions under test, with what a server does around them.
    fn perform(&self, write: &Write, answer: &Answer) -> Result<Value, ApplyError> {
        let ownable = if write.status { Ownable::only(&["status"]) } else { Ownable::all_but(&["status"]) };
        let blank = json!({});
        let target = Target {
            schema: self.schema,
            api_version: API_VERSION,
            versions: &[API_VERSION],
            subresource: if write.status { "status" } else { "" },
            ownable: &ownable,
            blank: &blank,
        };
        let live = self.live.as_ref();
        let now = self.time_of(answer);
        let mut new = match write.kind {
            Kind::Apply { force } => apply(&target, live, &write.body, write.manager, force, &now)?,
            Kind::Create | Kind::Update => write.body.clone(),
            Kind::MergePatch => {
                let mut patched = live.cloned().unwrap_or_default();
                json_patch::merge(&mut patched, &write.body);
                patched
            }
        };
        decode(&mut new);
        if !matches!(write.kind, Kind::Apply { .. }) {
            update(&target, live, &mut new, write.manager, &now);
        }
        reset(live, &mut new, write.status);
        if let Some(live) = live {
            keep_times(live, &mut new);
        }
        Ok(new)
    }
}

/// What the writer of the object cannot change: the status through the object, anything else through the status.
fn reset(live: Option<&Value>, new: &mut Value, status: bool) {
    let status_of = |value: &Value| value.get("status").cloned();
    let (mut result, status) = match (live, status) {
        (Some(live), true) => {
            let mut result = live.clone();
            result["metadata"]["managedFields"] = new["metadata"]["managedFields"].clone();
            (result, status_of(new))
        }
        (live, _) => (new.clone(), live.and_then(status_of)),
    };
    match status {
        Some(status) => result["status"] = status,
        None => drop(result.as_object_mut().unwrap().remove("status")),
    }
    *new = result;
}

/// What happens to an object when it is read: defaults, metadata that is never null and knows no empty maps, and places
/// of any type that know no null.
fn decode(object: &mut Value) {
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|name, value| name != "any" || !value.is_null());
    }
    if let Some(metadata @ Value::Null) = object.pointer_mut("/spec/embedded/metadata") {
        *metadata = json!({});
    }
    for place in ["/metadata", "/spec/embedded/metadata"] {
        if let Some(metadata) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            metadata.retain(|_, value| *value != json!({}) && !value.is_null());
        }
    }
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let port = port.as_object_mut().unwrap();
        port.entry("protocol").or_insert_with(|| "TCP".into());
    }
}

fn newest_time(object: &Value) -> Option<String> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().filter_map(|entry| entry["time"].as_str()).max().map(str::to_owned)
}

fn assert_same(ours: &Value, theirs: &Value, context: &dyn Fn() -> String) {
    let relevant = |object: &Value| {
        let mut relevant = Map::new();
        for name in ["labels", "annotations", "managedFields"] {
            let value = &object["metadata"][name];
            if !value.is_null() {
                relevant.insert(name.to_owned(), value.clone());
            }
        }
        for name in ["spec", "status"] {
            relevant.insert(name.to_owned(), object[name].clone());
        }
        Value::Object(relevant)
    };
    let (ours, theirs) = (relevant(ours), relevant(theirs));
    assert!(ours == theirs, "{}\nours: {ours:#}\ntheirs: {theirs:#}", context());
}

/// The server has refused the object for a null that it made or a member that it removed itself; so did we.
fn assert_invalid_alike(ours: &Value, status: &Value, context: &dyn Fn() -> String) {
    for cause in status["details"]["causes"].as_array().unwrap() {
        let pointer = format!("/{}", cause["field"].as_str().unwrap().replace(['.', '['], "/").replace(']', ""));
        let is_required = cause["reason"] == "FieldValueRequired";
        let expected = if is_required { None } else { Some(&Value::Null) };
        assert!(ours.pointer(&pointer) == expected, "{}\n{cause}\nours: {ours:#}", context());
    }
}

fn assert_same_error(error: ApplyError, theirs: &Value, context: &dyn Fn() -> String) {
    let mut ours = ApiError::from(error).status();
    let mut theirs = theirs.clone();
    // The server lists the causes of several managers in any order.
    for status in [&mut ours, &mut theirs] {
        let causes = status["details"]["causes"].as_array_mut().unwrap();
        causes.sort_by_key(ToString::to_string);
    }
    assert!(ours == theirs, "{}\nours: {ours:#}\ntheirs: {theirs:#}", context());
}
