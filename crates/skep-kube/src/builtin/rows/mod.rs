//! What `kubectl get` shows of built-in kinds: the columns of each kind, and the cells of each object.

mod network;
mod others;
mod pod;
mod workload;

use serde_json::Value;
use time::OffsetDateTime;

use super::Builtin;
use super::schema::schema;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub type_: &'static str,
    pub format: &'static str,
    pub description: String,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: u8,
}

/// How a column is declared: its name, its type, its priority, and where its description comes from.
struct Declared(&'static str, &'static str, u8, About);

/// Where a description comes from.
enum About {
    /// The description of that field, its path separated by dots.
    Field(&'static str),
    Words(&'static str),
}

use About::{Field, Words};

const NAME: Declared = Declared("Name", "string", 0, Field("metadata.name"));
const AGE: Declared = Declared("Age", "string", 0, Field("metadata.creationTimestamp"));
const CREATED_AT: Declared = Declared("Created At", "date", 0, Field("metadata.creationTimestamp"));
const CONTAINERS: Declared = Declared("Containers", "string", 1, Words("Names of each container in the template."));
const IMAGES: Declared = Declared("Images", "string", 1, Words("Images referenced by each container in the template."));

/// The columns of a kind. `priority` 1 is for wide output.
pub fn columns(kind: &Builtin) -> Vec<Column> {
    let shape = schema(kind.group, kind.version, kind.kind);
    let describe = |about: &About| match about {
        Words(text) => Some((*text).to_owned()),
        Field(path) => {
            let start = shape.clone()?;
            let place = path.split('.').try_fold(start, |place, name| place.member(name).cloned())?;
            place.description.clone()
        }
    };
    declared(kind)
        .into_iter()
        .map(|Declared(name, type_, priority, about)| Column {
            name,
            type_,
            format: if name == "Name" { "name" } else { "" },
            description: describe(&about).unwrap_or_default(),
            priority,
        })
        .collect()
}

fn declared(kind: &Builtin) -> Vec<Declared> {
    match kind.kind {
        "Pod" => pod::pod_columns(),
        "Node" => pod::node_columns(),
        "Deployment"
        | "ReplicaSet"
        | "StatefulSet"
        | "ControllerRevision"
        | "HorizontalPodAutoscaler"
        | "PodDisruptionBudget" => workload::columns(kind.kind),
        "Service" | "Endpoints" | "EndpointSlice" | "NetworkPolicy" | "Ingress" | "IngressClass" => {
            network::columns(kind.kind)
        }
        _ => others::columns(kind.kind),
    }
}

/// Whether a kind has columns of its own, rather than the name and time that every object can show.
pub fn has_own_columns(kind: &Builtin) -> bool {
    !declared(kind).iter().any(|Declared(name, ..)| *name == CREATED_AT.0)
}

/// The cells of an object, one per column.
pub fn row(kind: &Builtin, object: &Value, now: OffsetDateTime) -> Vec<Value> {
    match kind.kind {
        "Pod" => pod::pod_row(object, now),
        "Node" => pod::node_row(object, now),
        "Deployment"
        | "ReplicaSet"
        | "StatefulSet"
        | "ControllerRevision"
        | "HorizontalPodAutoscaler"
        | "PodDisruptionBudget" => workload::row(kind.kind, object, now),
        "Service" | "Endpoints" | "EndpointSlice" | "NetworkPolicy" | "Ingress" | "IngressClass" => {
            network::row(kind.kind, object, now)
        }
        _ => others::row(kind.kind, object, now),
    }
}

fn name(object: &Value) -> Value {
    object["metadata"]["name"].as_str().unwrap_or_default().into()
}

/// The age of a time that may be absent.
fn since(time: &Value, now: OffsetDateTime) -> String {
    crate::age::since(time.as_str().unwrap_or_default(), now)
}

fn age(object: &Value, now: OffsetDateTime) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The names and images of a template's containers.
fn template_cells(template: &Value) -> [Value; 2] {
    let join = |member: &str| {
        let texts: Vec<&str> =
            items(&template["spec"], "containers").iter().map(|container| text(container, member)).collect();
        Value::from(texts.join(","))
    };
    [join("name"), join("image")]
}

/// A label selector in one line; empty ones are `<none>`.
fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for requirement in items(selector, "matchExpressions") {
        let key = text(requirement, "key");
        let mut values: Vec<&str> = items(requirement, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        parts.push(match text(requirement, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") }
}

/// A map of labels in one line.
fn labels_text(labels: &Value) -> String {
    let parts: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") }
}
