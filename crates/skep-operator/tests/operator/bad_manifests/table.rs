//! The table of bad manifests: files of YAML, in `tests/bad_manifests`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skep_api::crd;

/// Objects that the bad ones name.
const AROUND: &str = "around";
/// Objects that nothing is wrong with.
const GOOD: &str = "good";

/// An object, and what is said about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub kind: String,
    pub name: String,
    spec: Option<Value>,
    /// What somebody else has written there.
    pub status: Option<Value>,
    /// The answer of the API server, which accepts the object only past its schema.
    pub refused: Option<String>,
    phase: Option<String>,
    /// Conditions as `Type=Status/Reason`, with their messages.
    #[serde(default)]
    says: BTreeMap<String, String>,
    /// The note of a warning, where the API server takes no status.
    event: Option<String>,
}

impl Case {
    /// The object as a user writes it.
    pub fn object(&self) -> Value {
        let entry = crd::ALL.iter().find(|entry| entry.definition.kind == self.kind).unwrap();
        self.object_in(entry.definition.storage_version())
    }

    pub fn object_in(&self, version: &str) -> Value {
        let api_version = format!("{}/{version}", skep_api::kind::GROUP);
        let mut object = json!({"apiVersion": api_version, "kind": self.kind, "metadata": {"name": self.name}});
        if let Some(spec) = &self.spec {
            object["spec"] = spec.clone();
        }
        object
    }

    /// How an object differs from the table. `warnings` are the events so far, each with the name of its object.
    pub fn differences(&self, found: &Value, warnings: &[(String, String)]) -> Vec<String> {
        let status = &found["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions: BTreeMap<String, String> = status["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|found| {
                let [type_, status, reason] = ["type", "status", "reason"].map(|member| text(&found[member]));
                (format!("{type_}={status}/{reason}"), text(&found["message"]))
            })
            .collect();
        let mut wrong = Vec::new();
        for (condition, message) in &self.says {
            if conditions.get(condition) != Some(message) {
                wrong.push(format!("{} {}: not {condition}: {message:?}, but {conditions:#?}", self.kind, self.name));
            }
        }
        if self.phase.as_ref().is_some_and(|expected| *expected != text(&status["phase"])) {
            wrong.push(format!("{} {}: phase {}", self.kind, self.name, status["phase"]));
        }
        let warning = self.event.as_ref().map(|note| (self.name.clone(), note.clone()));
        if warning.is_some_and(|warning| !warnings.contains(&warning)) {
            wrong.push(format!("{} {}: no such warning among {warnings:#?}", self.kind, self.name));
        }
        wrong
    }
}

/// Where objects like this one are.
pub fn resource(object: &Value) -> ApiResource {
    let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
    ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap())
}

pub fn around() -> Vec<Value> {
    file(AROUND)
}

pub fn good() -> Vec<Case> {
    file(GOOD)
}

/// Every case of every other file.
pub fn bad() -> Vec<Case> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| ![AROUND, GOOD].contains(&name.as_str()))
        .collect();
    names.sort();
    names.iter().flat_map(|name| file::<Case>(name)).collect()
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "bad_manifests"].iter().collect()
}

fn file<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = std::fs::read_to_string(folder().join(name).with_extension("yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}.yaml: {error}"))
}
