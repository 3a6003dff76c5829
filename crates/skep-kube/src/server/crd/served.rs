//! From a definition to the resource that is served.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::registry::{Column, Origin, Resource, Subresource, Version, version_priority};
use super::super::tenure::Tenure;
use super::{conditions, text};
use crate::json_path::JsonPath;
use crate::schema::{CompiledSchema, Scale, Schema};

/// What discovery says can be done with a custom resource, in its order.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What can be done while the definition waits for the last object to go.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What an established definition defines, under the names that were accepted. `tenure` says since when.
pub fn resource(definition: &Value, tenure: Tenure) -> Resource {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let kind = text(names, "kind");
    let defined: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    let storage = defined.iter().find(|version| version["storage"] == true);
    let mut versions: Vec<Version> = defined
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| read_version(version, text(spec, "group"), kind))
        .collect();
    versions.sort_by_key(|version| Reverse(version_priority(&version.name)));
    let is_terminating = conditions::holds(definition, conditions::TERMINATING);
    let verbs = if is_terminating { &LAST_VERBS[..] } else { &VERBS };
    let storage_schema = storage.map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"]);
    let is_of_one_shape = versions.iter().all(|version| version.published == *storage_schema);
    Resource {
        group: text(spec, "group").to_owned(),
        kind: kind.to_owned(),
        list_kind: text(names, "listKind").to_owned(),
        plural: text(names, "plural").to_owned(),
        singular: text(names, "singular").to_owned(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        versions,
        storage_version: storage.map(|version| text(version, "name").to_owned()).unwrap_or_default(),
        storage_schema: Arc::new(Schema::read(storage_schema)),
        origin: Origin::Custom,
        is_of_one_shape,
        converter: converter(&spec["conversion"]),
        is_terminating,
        tenure,
    }
}

/// Where a definition says that objects are translated.
fn converter(conversion: &Value) -> Option<String> {
    if conversion["strategy"] != "Webhook" {
        return None;
    }
    let client = &conversion["webhook"]["clientConfig"];
    let service = &client["service"];
    let of_service = || {
        let (name, namespace, path) = (text(service, "name"), text(service, "namespace"), text(service, "path"));
        format!("https://{name}.{namespace}.svc:{}{path}", service["port"].as_u64().unwrap_or(443))
    };
    Some(client["url"].as_str().map_or_else(of_service, str::to_owned))
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
        compiled: Some(CompiledSchema::new(schema.clone()).with_scale(Scale::read(&version["subresources"]["scale"]))),
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
    if let Some(scale) = Scale::read(&defined["scale"]) {
        parts.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            group_version: Some(("autoscaling".into(), "v1".into())),
            verbs,
            scale: Some(scale),
        });
    }
    parts
}
