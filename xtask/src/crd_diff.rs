//! How our CRDs differ from somebody else's, in what they mean: schema, defaults, enums, bounds, list types, rules,
//! names, columns, versions. Descriptions and the order of things that have none are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};

use crate::workspace;

/// One difference, at one place of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    place: String,
    change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// Only ours have it, and objects without it stay valid.
    Added(String),
    /// Only theirs have it.
    Removed(String),
    /// Both have it, and it is not the same.
    Changed { theirs: String, ours: String },
}

impl Difference {
    pub(crate) fn is_optional_addition(&self) -> bool {
        matches!(self.change, Change::Added(_))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::Added(ours) => write!(formatter, "+ {}: {ours}", self.place),
            Change::Removed(theirs) => write!(formatter, "- {}: {theirs}", self.place),
            Change::Changed { theirs, ours } => write!(formatter, "~ {}: {theirs} -> {ours}", self.place),
        }
    }
}

pub(crate) fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    let differences = between(&read_folder(folder)?, &ours()?);
    for difference in &differences {
        println!("{difference}");
    }
    let additions = differences.iter().filter(|difference| difference.is_optional_addition()).count();
    eprintln!("{additions} optional additions, {} other differences", differences.len() - additions);
    Ok(if additions == differences.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Definitions by the name of their CRD.
type Definitions = BTreeMap<String, Value>;

/// Our own definitions, as the program prints them.
fn ours() -> anyhow::Result<Definitions> {
    let output = Command::new(workspace::cargo())
        .args(["run", "--quiet", "--locked", "--package", "skep", "--", "crds", "--output", "json"])
        .current_dir(workspace::root())
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "`skep crds` failed");
    let mut definitions = Definitions::new();
    collect(serde_json::from_slice(&output.stdout)?, &mut definitions)?;
    Ok(definitions)
}

/// All differences between two sets of definitions.
fn between(theirs: &Definitions, ours: &Definitions) -> Vec<Difference> {
    let mut report = Report::default();
    for name in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        match (theirs.get(name), ours.get(name)) {
            (Some(theirs), Some(ours)) => compare_definitions(kind_of(theirs), theirs, ours, &mut report),
            (None, _) => report.add(name, Change::Added("the whole kind".into())),
            (_, None) => report.add(name, Change::Removed("the whole kind".into())),
        }
    }
    report.0
}

fn read_folder(folder: &Path) -> anyhow::Result<Definitions> {
    let mut definitions = Definitions::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default();
        if !(path.is_file() && (extension == "yaml" || extension == "yml" || extension == "json")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        for document in documents {
            collect(document, &mut definitions).with_context(|| path.display().to_string())?;
        }
    }
    ensure!(!definitions.is_empty(), "there are no CustomResourceDefinitions in {}", folder.display());
    Ok(definitions)
}

/// Takes the definitions out of a document: one, or a List of them.
fn collect(document: Value, definitions: &mut Definitions) -> anyhow::Result<()> {
    match document["kind"].as_str() {
        Some("CustomResourceDefinition") => {
            let name = document["metadata"]["name"].as_str().unwrap_or("?").to_owned();
            let known = definitions.insert(name.clone(), document);
            ensure!(known.is_none(), "there are two definitions of {name}");
        }
        Some("List") => {
            for item in document["items"].as_array().cloned().unwrap_or_default() {
                collect(item, definitions)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn kind_of(definition: &Value) -> &str {
    definition["spec"]["names"]["kind"].as_str().unwrap_or("?")
}

#[derive(Debug, Default)]
struct Report(Vec<Difference>);

impl Report {
    fn add(&mut self, place: &str, change: Change) {
        self.0.push(Difference { place: place.to_owned(), change });
    }

    /// Compares what is one value, or a set of values whose order means nothing.
    fn compare(&mut self, place: &str, theirs: &Value, ours: &Value) {
        if sorted(theirs) == sorted(ours) {
            return;
        }
        self.add(
            place,
            match (theirs, ours) {
                (Value::Null, ours) => Change::Changed { theirs: "absent".into(), ours: ours.to_string() },
                (theirs, Value::Null) => Change::Removed(theirs.to_string()),
                (theirs, ours) => Change::Changed { theirs: theirs.to_string(), ours: ours.to_string() },
            },
        );
    }
}

fn sorted(value: &Value) -> Value {
    let Value::Array(items) = value else {
        return value.clone();
    };
    let mut items = items.clone();
    items.sort_by_key(ToString::to_string);
    Value::Array(items)
}

fn compare_definitions(kind: &str, theirs: &Value, ours: &Value, report: &mut Report) {
    for pointer in
        ["/metadata/name", "/metadata/labels", "/spec/group", "/spec/names", "/spec/scope", "/spec/conversion"]
    {
        compare_members(&format!("{kind} {}", &pointer[1..]), theirs.pointer(pointer), ours.pointer(pointer), report);
    }
    let (their_versions, our_versions) = (versions(theirs), versions(ours));
    for name in their_versions.keys().chain(our_versions.keys()).collect::<BTreeSet<_>>() {
        let place = format!("{kind} {name}");
        match (their_versions.get(name), our_versions.get(name)) {
            (Some(theirs), Some(ours)) => compare_versions(&place, theirs, ours, report),
            (theirs, ours) => report.add(
                &place,
                Change::Changed { theirs: theirs.is_some().to_string(), ours: ours.is_some().to_string() },
            ),
        }
    }
}

fn compare_members(place: &str, theirs: Option<&Value>, ours: Option<&Value>, report: &mut Report) {
    let empty = Map::new();
    match (theirs, ours) {
        (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
            for name in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                let (theirs, ours) = (theirs.get(name), ours.get(name));
                report.compare(
                    &format!("{place}.{name}"),
                    theirs.unwrap_or(&Value::Null),
                    ours.unwrap_or(&Value::Null),
                );
            }
        }
        (theirs, ours) => {
            let nothing = Value::Object(empty);
            report.compare(place, theirs.unwrap_or(&nothing), ours.unwrap_or(&nothing));
        }
    }
}

fn versions(definition: &Value) -> BTreeMap<String, Value> {
    let listed = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    listed.into_iter().map(|version| (version["name"].as_str().unwrap_or("?").to_owned(), version)).collect()
}

fn compare_versions(place: &str, theirs: &Value, ours: &Value, report: &mut Report) {
    for member in ["served", "storage", "deprecated", "deprecationWarning", "selectableFields"] {
        report.compare(&format!("{place} {member}"), &theirs[member], &ours[member]);
    }
    compare_columns(place, &theirs["additionalPrinterColumns"], &ours["additionalPrinterColumns"], report);
    for subresource in ["status", "scale"] {
        let (theirs, ours) = (&theirs["subresources"][subresource], &ours["subresources"][subresource]);
        let place = format!("{place} subresource {subresource}");
        if theirs.is_null() && !ours.is_null() {
            report.add(&place, Change::Added(ours.to_string()));
        } else {
            report.compare(&place, theirs, ours);
        }
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    compare_schemas(&format!("{place} "), &schema(theirs), &schema(ours), report);
}

/// Columns are shown in order, so the order of those that both have matters.
fn compare_columns(place: &str, theirs: &Value, ours: &Value, report: &mut Report) {
    let list = |columns: &Value| columns.as_array().cloned().unwrap_or_default();
    let (theirs, ours) = (list(theirs), list(ours));
    let known: Vec<Value> = ours.iter().filter(|column| theirs.contains(column)).cloned().collect();
    if known != theirs {
        let change = Change::Changed {
            theirs: Value::from(theirs.clone()).to_string(),
            ours: Value::from(ours.clone()).to_string(),
        };
        report.add(&format!("{place} columns"), change);
        return;
    }
    for column in ours.iter().filter(|column| !theirs.contains(column)) {
        let name = column["name"].as_str().unwrap_or("?");
        report.add(&format!("{place} column {name}"), Change::Added(column["jsonPath"].to_string()));
    }
}

fn compare_schemas(path: &str, theirs: &Value, ours: &Value, report: &mut Report) {
    let (Value::Object(theirs), Value::Object(ours)) = (theirs, ours) else {
        report.compare(path, theirs, ours);
        return;
    };
    for keyword in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let get = |schema: &Map<String, Value>| schema.get(keyword).cloned().unwrap_or(Value::Null);
        match keyword.as_str() {
            "description" => {}
            "properties" => compare_properties(path, theirs, ours, report),
            "items" => compare_schemas(&format!("{path}[]"), &get(theirs), &get(ours), report),
            "additionalProperties" => compare_schemas(&format!("{path}.*"), &get(theirs), &get(ours), report),
            _ => report.compare(&format!("{path} {keyword}"), &get(theirs), &get(ours)),
        }
    }
}

fn compare_properties(path: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>, report: &mut Report) {
    let properties =
        |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let (their_properties, our_properties) = (properties(theirs), properties(ours));
    for name in their_properties.keys().chain(our_properties.keys()).collect::<BTreeSet<_>>() {
        let path = if path.ends_with(' ') { format!("{path}{name}") } else { format!("{path}.{name}") };
        match (their_properties.get(name), our_properties.get(name)) {
            (Some(theirs), Some(ours)) => compare_schemas(&path, theirs, ours, report),
            // A required addition shows up as a difference in `required`, which is not optional.
            (None, Some(ours)) => report.add(&path, Change::Added(ours["type"].as_str().unwrap_or("any").to_owned())),
            (Some(theirs), None) => {
                report.add(&path, Change::Removed(theirs["type"].as_str().unwrap_or("any").to_owned()));
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests;
