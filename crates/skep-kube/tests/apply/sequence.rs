//! A sequence of writes to one object by several managers, on both servers.

use serde_json::{Value, json};

use super::dice::Dice;
use super::pair::{Answer, Ask, Both, Pair};
use super::rounds::Rounds;

pub(crate) const COLLECTION: &str = "/apis/apply.test/v1/namespaces/default/shapes";
const MANAGERS: [&str; 3] = ["one", "two", "three"];

/// What the sequences have reached.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub succeeded: u32,
    pub unchanged: u32,
    pub rehearsed: u32,
    pub conflicts: u32,
    pub invalid: u32,
}

pub(crate) struct Sequence {
    dice: Dice,
    name: String,
    live: Option<Both<Value>>,
    /// The object before its last write, if that has changed it.
    stale: Option<Both<Value>>,
    /// Whether an apply has made it what it is.
    was_applied: bool,
}

/// A write to be done on both sides.
#[derive(Debug)]
struct Write {
    kind: Kind,
    manager: &'static str,
    status: bool,
    dry_run: bool,
    body: Both<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Create,
    Apply { force: bool },
    Update,
    MergePatch,
}

impl Sequence {
    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice(seed), name: format!("shape-{seed}"), live: None, stale: None, was_applied: false }
    }

    pub(crate) async fn step(&mut self, pair: &Pair, rounds: &Rounds, tally: &mut Tally) {
        let write = self.choose();
        let answers = pair.send(&self.ask(&write)).await;
        self.compare(&write, answers.clone(), rounds);
        match answers.theirs.code {
            409 => tally.conflicts += 1,
            422 => tally.invalid += 1,
            200 | 201 if write.dry_run => tally.rehearsed += 1,
            200 | 201 => {
                tally.succeeded += 1;
                let unchanged = self.unchanged(&answers);
                // What the real server has stored for an apply may hold empty maps in its metadata that nobody is
                // shown, and the next write, which takes them out, counts as a change there.
                assert!(unchanged.ours == unchanged.theirs || self.was_applied, "{}: {write:?}", self.name);
                tally.unchanged += u32::from(unchanged.theirs);
                self.was_applied = matches!(write.kind, Kind::Apply { .. }) || self.was_applied && unchanged.theirs;
                let before = self.live.replace(answers.map(|answer| answer.document));
                self.stale = before.filter(|_| unchanged == same(false));
            }
            code => panic!("{} {code}: {write:#?}\n{answers:#?}", self.name),
        }
    }

    fn choose(&mut self) -> Write {
        let manager = self.dice.pick(&MANAGERS);
        let dry_run = self.dice.one_in(10);
        let Some(live) = self.live.clone() else {
            let kind = if self.dice.one_in(2) { Kind::Create } else { Kind::Apply { force: false } };
            return Write { kind, manager, status: false, dry_run, body: same(self.object()) };
        };
        let status = self.dice.one_in(8);
        let (kind, body) = match self.dice.below(10) {
            0..=5 => (Kind::Apply { force: self.dice.one_in(3) }, same(self.object())),
            6 | 7 => (Kind::Update, self.replacement(&live)),
            _ => (Kind::MergePatch, same(self.patch(&live.theirs))),
        };
        Write { kind, manager, status, dry_run, body }
    }

    fn replacement(&mut self, live: &Both<Value>) -> Both<Value> {
        let mut body = self.object();
        let mut metadata = self.dice.metadata();
        metadata.insert("name".to_owned(), self.name.clone().into());
        let managed_fields = match self.dice.below(24) {
            0 => Some(json!([{}])),
            1 => Some(json!([])),
            2..=12 => None,
            _ => Some(Value::Null),
        };
        body["metadata"] = Value::Object(metadata);
        // Sometimes all is replaced, more often something.
        if let (false, Some(spec)) = (self.dice.one_in(4), live.theirs["spec"].as_object()) {
            let mut spec = spec.clone();
            spec.extend(body["spec"].as_object().cloned().unwrap_or_default());
            body["spec"] = Value::Object(spec);
        }
        // Now and then somebody has read the object before the last write.
        let read = self.stale.as_ref().filter(|_| self.dice.one_in(12)).unwrap_or(live);
        read.as_ref().map(|read| {
            let mut body = body.clone();
            for name in ["namespace", "uid", "resourceVersion", "creationTimestamp", "generation"] {
                body["metadata"][name] = read["metadata"][name].clone();
            }
            let entries = managed_fields.clone().unwrap_or_else(|| read["metadata"]["managedFields"].clone());
            if !entries.is_null() {
                body["metadata"]["managedFields"] = entries;
            }
            body
        })
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
            json!({ "apiVersion": "apply.test/v1", "kind": "Shape", "metadata": metadata, "spec": self.dice.spec() });
        if self.dice.one_in(4) {
            object["status"] = self.dice.status();
        }
        object
    }

    fn ask(&self, write: &Write) -> Ask {
        let (name, manager) = (&self.name, write.manager);
        let subresource = if write.status { "/status" } else { "" };
        let object = format!("{COLLECTION}/{name}{subresource}?fieldManager={manager}");
        let (method, path, content_type) = match write.kind {
            Kind::Create => ("POST", format!("{COLLECTION}?fieldManager={manager}"), "application/json"),
            Kind::Apply { force } => ("PATCH", format!("{object}&force={force}"), "application/apply-patch+yaml"),
            Kind::Update => ("PUT", object, "application/json"),
            Kind::MergePatch => ("PATCH", object, "application/merge-patch+json"),
        };
        let path = if write.dry_run { format!("{path}&dryRun=All") } else { path };
        Ask { method, path, content_type, body: write.body.clone() }
    }

    /// Everything that the servers say is the same, but for identities, moments, and what the real one says in any order.
    fn compare(&self, write: &Write, answers: Both<Answer>, rounds: &Rounds) {
        let documents = rounds.comparable(answers.as_ref().map(|answer| answer.document.clone()));
        let Both { mut ours, mut theirs } = answers;
        ours.document = documents.ours;
        theirs.document = documents.theirs;
        for answer in [&mut ours, &mut theirs] {
            let Some(causes) = answer.document.pointer_mut("/details/causes").and_then(Value::as_array_mut) else {
                continue;
            };
            causes.sort_by_key(ToString::to_string);
            let are_told_together = answer.code == 422 && causes.len() > 1;
            if are_told_together && let Some((object, _)) = answer.document["message"].as_str().unwrap().split_once('[')
            {
                answer.document["message"] = object.into();
            }
        }
        assert!(
            ours == theirs,
            "{}: {write:?}\nlive: {:#}\nours: {} {:?} {:#}\ntheirs: {} {:?} {:#}",
            self.name,
            self.live.as_ref().map(|live| live.theirs.clone()).unwrap_or_default(),
            ours.code,
            ours.warnings,
            ours.document,
            theirs.code,
            theirs.warnings,
            theirs.document,
        );
    }

    /// Whether a write has left the object as it was, by its revision.
    fn unchanged(&self, answers: &Both<Answer>) -> Both<bool> {
        let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let Some(live) = &self.live else { return same(false) };
        Both {
            ours: revision(&live.ours) == revision(&answers.ours.document),
            theirs: revision(&live.theirs) == revision(&answers.theirs.document),
        }
    }
}

fn same<T: Clone>(value: T) -> Both<T> {
    Both { ours: value.clone(), theirs: value }
}
