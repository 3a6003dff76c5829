//! Custom resources: from the definition that a user installs to the resource that is served.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::registry::{Column, Origin, Resource, Scale, Subresource, Version, version_priority};
use super::{StartError, State};
use crate::json_path::JsonPath;
use crate::schema::{CompiledSchema, Schema};
use crate::store::Selection;

/// The resource that definitions themselves are.
pub const GROUP: &str = "apiextensions.k8s.io";
pub const PLURAL: &str = "customresourcedefinitions";

/// What discovery says can be done with a custom resource, in its order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Whether a request is about definitions.
pub fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// Serves the custom resources whose definitions are in the store.
pub fn install_stored(state: &State) -> Result<(), StartError> {
    let storage_name = format!("{GROUP}/{PLURAL}");
    for record in state.store.list(&Selection::all(&storage_name)).records {
        let definition: Value = serde_json::from_slice(&record.object)
            .map_err(|error| StartError::Definition { name: record.key.name.to_string(), cause: error.to_string() })?;
        install(state, &definition);
    }
    Ok(())
}

/// Begins to serve the resource of a definition, or serves it as it is defined now.
pub fn install(state: &State, definition: &Value) {
    state.registry.insert(resource(definition));
}

/// Stops serving the resource of a definition.
pub fn remove(state: &State, definition: &Value) {
    let spec = &definition["spec"];
    state.registry.remove(text(spec, "group"), text(&spec["names"], "plural"));
}

/// Fills in what a definition may leave out, and says that its resource is served: with one server and one writer there
/// is nobody to wait for.
pub fn default(definition: &mut Value) {
    let names = definition["spec"]["names"].clone();
    let kind = text(&names, "kind").to_owned();
    for (member, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if text(&names, member).is_empty() {
            definition["spec"]["names"][member] = value.into();
        }
    }
    if definition["spec"]["conversion"].is_null() {
        definition["spec"]["conversion"] = json!({ "strategy": "None" });
    }
    let stored: Vec<String> = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| text(version, "name").to_owned())
        .collect();
    let mut all_stored = texts(&definition["status"]["storedVersions"]);
    all_stored
        .extend(stored.into_iter().filter(|version| !texts(&definition["status"]["storedVersions"]).contains(version)));
    let conditions = if definition["status"]["conditions"].as_array().is_some_and(|list| !list.is_empty()) {
        definition["status"]["conditions"].clone()
    } else {
        let now = super::write::now();
        json!([
            { "type": "NamesAccepted", "status": "True", "lastTransitionTime": now, "reason": "NoConflicts", "message": "no conflicts found" },
            { "type": "Established", "status": "True", "lastTransitionTime": now, "reason": "InitialNamesAccepted", "message": "the initial names have been accepted" },
        ])
    };
    definition["status"] = json!({
        "acceptedNames": definition["spec"]["names"],
        "conditions": conditions,
        "storedVersions": all_stored,
    });
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a valid definition defines.
pub fn resource(definition: &Value) -> Resource {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let kind = text(names, "kind");
    let defined: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    let storage = defined.iter().find(|version| version["storage"] == true);
    let mut versions: Vec<Version> = defined
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| read_version(version, text(spec, "group"), kind))
        .collect();
    versions.sort_by_key(|version| Reverse(version_priority(&version.name)));
    let or = |given: &str, default: String| if given.is_empty() { default } else { given.to_owned() };
    Resource {
        group: text(spec, "group").to_owned(),
        kind: kind.to_owned(),
        list_kind: or(text(names, "listKind"), format!("{kind}List")),
        plural: text(names, "plural").to_owned(),
        singular: or(text(names, "singular"), kind.to_lowercase()),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS.map(str::to_owned).to_vec(),
        versions,
        storage_version: storage.map(|version| text(version, "name").to_owned()).unwrap_or_default(),
        origin: Origin::Custom,
    }
}

fn read_version(version: &Value, group: &str, kind: &str) -> Version {
    let name = text(version, "name");
    let schema = Arc::new(Schema::read(&version["schema"]["openAPIV3Schema"]));
    let deprecation = (version["deprecated"] == true).then(|| match text(version, "deprecationWarning") {
        "" => format!("{group}/{name} {kind} is deprecated"),
        warning => warning.to_owned(),
    });
    Version {
        name: name.to_owned(),
        deprecation,
        columns: columns(&version["additionalPrinterColumns"]),
        subresources: subresources(&version["subresources"], kind),
        compiled: Some(CompiledSchema::new(schema.clone())),
        schema,
        published: version["schema"]["openAPIV3Schema"].clone(),
        selectable_fields: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(field, "jsonPath").trim_start_matches('.').to_owned())
            .collect(),
    }
}

/// The columns of `kubectl get`; a definition without any gets the age.
fn columns(defined: &Value) -> Vec<Column> {
    let age = json!([{ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }]);
    let defined = if defined.as_array().is_some_and(|columns| !columns.is_empty()) { defined } else { &age };
    let read = |column: &Value| {
        Some(Column {
            name: text(column, "name").to_owned(),
            type_: text(column, "type").to_owned(),
            format: text(column, "format").to_owned(),
            description: text(column, "description").to_owned(),
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: JsonPath::compile(text(column, "jsonPath")).ok()?,
        })
    };
    defined.as_array().into_iter().flatten().filter_map(read).collect()
}

fn subresources(defined: &Value, kind: &str) -> Vec<Subresource> {
    let verbs = PART_VERBS.map(str::to_owned).to_vec();
    let mut parts = Vec::new();
    if defined["status"].is_object() {
        parts.push(Subresource {
            name: "status".into(),
            kind: kind.to_owned(),
            group_version: None,
            verbs: verbs.clone(),
            scale: None,
        });
    }
    if defined["scale"].is_object() {
        let scale = &defined["scale"];
        parts.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            group_version: Some(("autoscaling".into(), "v1".into())),
            verbs,
            scale: Some(Scale {
                spec_replicas: text(scale, "specReplicasPath").to_owned(),
                status_replicas: text(scale, "statusReplicasPath").to_owned(),
                label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
            }),
        });
    }
    parts
}
