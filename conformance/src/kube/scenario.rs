//! Scenarios as they are written in `conformance/kube`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::Value;

use super::definition::Definition;
use super::server::Caller;
use crate::files::{LoadError, entries, file_stem, read};

/// A list of requests with what must hold afterwards.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Area and file name: `apply/conflict`.
    #[serde(skip)]
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    /// Custom resource definitions that are installed before the first step.
    #[serde(default)]
    pub definitions: Vec<Definition>,
    /// Whether `managedFields` are recorded. They are long, and most scenarios are not about them.
    #[serde(default)]
    pub managed_fields: bool,
    pub steps: Vec<Step>,
}

/// A request, or the collection of what a watch has seen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Method, path and query: `GET /api/v1/pods?limit=1`.
    #[serde(default)]
    pub request: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Stands for the content type of a patch.
    #[serde(default)]
    pub patch: Option<PatchKind>,
    #[serde(default)]
    pub body: Option<Value>,
    /// A body that is not JSON made from YAML.
    #[serde(default)]
    pub raw_body: Option<String>,
    /// A body that is not even text.
    #[serde(default)]
    pub base64_body: Option<ByteString>,
    #[serde(default, rename = "as")]
    pub caller: Caller,
    /// The request opens a watch of this name, which collects events while the scenario goes on.
    #[serde(default)]
    pub watch: Option<String>,
    /// The answer of this step is the list of events that the watch of this name has seen.
    #[serde(default)]
    pub collect: Option<String>,
    #[serde(default)]
    pub until: Until,
    #[serde(default)]
    pub expect: Expect,
    /// Names for values of the answer, by JSON pointer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The request is repeated until the expectations hold; only the last answer is recorded.
    #[serde(default)]
    pub eventually: bool,
    /// Paths of the answer that are not recorded; `*` is any member, `**` any number of them.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Lists of the answer of which only some items are recorded.
    #[serde(default)]
    pub select: Vec<Select>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// When a watch has seen enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// When the server ends it.
    #[default]
    End,
    /// After so many events, bookmarks not counted.
    Events(usize),
    /// After an event of this type.
    Type(String),
}

/// What must hold of an answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
    #[serde(default)]
    pub body: Option<Value>,
}

/// Keeps only the items of a list whose member has one of the values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    pub at: String,
    pub by: String,
    #[serde(rename = "in")]
    pub values: Vec<String>,
}

/// Reads every scenario, in the order of names.
pub fn load() -> Result<Vec<Scenario>, LoadError> {
    let mut scenarios = Vec::new();
    for area in entries(&super::folder())? {
        let area_name = file_stem(&area);
        if !area.is_dir() || ["golden", "definitions"].contains(&area_name.as_str()) {
            continue;
        }
        for path in entries(&area)? {
            let text = read(&path)?;
            let mut scenario: Scenario = serde_saphyr::from_str(&text)
                .map_err(|error| LoadError::Parse { path: path.clone(), message: error.to_string() })?;
            scenario.name = format!("{area_name}/{}", file_stem(&path));
            scenarios.push(scenario);
        }
    }
    Ok(scenarios)
}

/// Everybody who makes a request in the scenarios.
pub fn callers(scenarios: &[Scenario]) -> BTreeSet<Caller> {
    let steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
    steps.map(|step| step.caller.clone()).chain([Caller::Admin]).collect()
}
