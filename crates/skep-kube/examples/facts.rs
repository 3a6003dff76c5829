//! Prints `src/builtin/facts.tsv`: what the schemas of k8s-openapi do not say about built-in kinds.
//!
//! ```text
//! facts SHAPES OPENAPI.json… > crates/skep-kube/src/builtin/facts.tsv
//! ```
//!
//! The OpenAPI documents are those a real server serves under `/openapi/v3`. SHAPES is a table of
//! `definition<TAB>member<TAB>type<TAB>flags<TAB>name<TAB>inline` that tells how Kubernetes' own types hold each member:
//! `flags` is empty when a member is written even when it has no value, and a type with `*` knows "absent" apart from
//! zero. OpenAPI has no words for that, and clients see the difference (`readOnly: false` vanishes,
//! `enableServiceLinks: false` stays). `name` is what the type is called where it has a name that `type` does not tell
//! (`v1.PullPolicy`), and `inline` the embedded structs on the way to the member (`VolumeSource`): both stand in the
//! complaints about values of the wrong type. `go run ./shapes` in `tools/control-plane` makes it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::Value;

type Definitions = BTreeMap<String, Value>;
/// How a member is held, by definition and member.
type Shapes = BTreeMap<(String, String), Shape>;

struct Shape {
    kind: String,
    flags: String,
    name: String,
    inline: String,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let shapes = read_shapes(&arguments.next().context("usage: facts SHAPES OPENAPI.json…")?)?;
    let mut definitions = Definitions::new();
    for path in arguments {
        let document: Value = serde_json::from_slice(&std::fs::read(&path).context(path)?)?;
        for (name, definition) in document["components"]["schemas"].as_object().into_iter().flatten() {
            definitions.insert(name.clone(), definition.clone());
        }
    }
    let mut todo: Vec<String> =
        skep_kube::builtin::table().iter().map(skep_kube::builtin::Builtin::definition_name).collect();
    let extra = [
        "io.k8s.api.authentication.v1.SelfSubjectReview",
        "io.k8s.api.authentication.v1.TokenRequest",
        "io.k8s.api.authentication.v1.TokenReview",
        "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        "io.k8s.api.authorization.v1.SubjectAccessReview",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.core.v1.Binding",
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    ];
    todo.extend(extra.map(str::to_owned));
    let mut rows = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        let Some(definition) = definitions.get(&name) else { continue };
        if scalar(&name).is_none() && seen.insert(name.clone()) {
            rows.insert(short(&name), describe(&name, definition, &shapes, &mut todo));
        }
    }
    println!("# Made by examples/facts.rs from a real server's OpenAPI; do not edit.");
    for lines in rows.values() {
        for line in lines {
            println!("{line}");
        }
    }
    Ok(())
}

fn read_shapes(path: &str) -> anyhow::Result<Shapes> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.split('\t').map(str::to_owned);
        let member = (cells.next()?, cells.next()?);
        let (kind, flags, name, inline) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
        Some((member, Shape { kind, flags, name, inline }))
    });
    Ok(rows.collect())
}

/// `core.v1.Pod` for `io.k8s.api.core.v1.Pod`.
fn short(name: &str) -> String {
    let parts: Vec<&str> = name.rsplitn(4, '.').collect();
    parts.iter().take(3).rev().copied().collect::<Vec<_>>().join(".")
}

/// Definitions that stand for one value.
fn scalar(name: &str) -> Option<&'static str> {
    Some(match name.rsplit('.').next()? {
        "Quantity" => "quantity",
        "Time" => "time",
        "MicroTime" => "microtime",
        "IntOrString" => "intorstring",
        "RawExtension"
        | "FieldsV1"
        | "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => "raw",
        _ => return None,
    })
}

fn describe(name: &str, definition: &Value, shapes: &Shapes, todo: &mut Vec<String>) -> Vec<String> {
    let mut own = vec![short(name), "-".to_owned()];
    if let Some(required) = definition["required"].as_array() {
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        own.push(format!("required={}", required.join(",")));
    }
    push_text(&mut own, "map", &definition["x-kubernetes-map-type"]);
    if let Some(unions) = definition.get("x-kubernetes-unions") {
        own.push(format!("unions={unions}"));
    }
    let mut rows = vec![own.join("\t")];
    for (member, property) in definition["properties"].as_object().into_iter().flatten() {
        let mut cells = vec![short(name), member.clone(), format!("is={}", type_of(property, todo))];
        push_text(&mut cells, "list", &property["x-kubernetes-list-type"]);
        push_list(&mut cells, "keys", &property["x-kubernetes-list-map-keys"]);
        push_text(&mut cells, "map", &property["x-kubernetes-map-type"]);
        push_text(&mut cells, "patch", &property["x-kubernetes-patch-strategy"]);
        push_text(&mut cells, "key", &property["x-kubernetes-patch-merge-key"]);
        push_list(&mut cells, "enum", &property["enum"]);
        push_list(&mut cells, "items.enum", &property["items"]["enum"]);
        push_list(&mut cells, "values.enum", &property["additionalProperties"]["enum"]);
        let values = &property["additionalProperties"];
        for (keyword, place) in
            [("", property), ("items.", &property["items"]), ("values.", values), ("values.items.", &values["items"])]
        {
            if let Some(default) = place.get("default") {
                cells.push(format!("{keyword}default={default}"));
            }
        }
        if let Some(shape) = shapes.get(&(name.to_owned(), member.clone())) {
            cells.extend(absence(&shape.kind, &shape.flags, property).map(str::to_owned));
            for (keyword, text) in [("go", &shape.name), ("inline", &shape.inline)] {
                if !text.is_empty() {
                    cells.push(format!("{keyword}={text}"));
                }
            }
        }
        rows.push(cells.join("\t"));
    }
    rows
}

fn push_text(cells: &mut Vec<String>, keyword: &str, value: &Value) {
    if let Some(text) = value.as_str() {
        cells.push(format!("{keyword}={text}"));
    }
}

fn push_list(cells: &mut Vec<String>, keyword: &str, value: &Value) {
    if let Some(items) = value.as_array() {
        let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        cells.push(format!("{keyword}={}", items.join(",")));
    }
}

/// The type, and whatever definitions it leads to.
fn type_of(property: &Value, todo: &mut Vec<String>) -> String {
    let reference = property["$ref"].as_str().or_else(|| property["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.rsplit('/').next().unwrap_or_default();
        todo.push(name.to_owned());
        return scalar(name).map_or_else(|| short(name), str::to_owned);
    }
    if property["items"].is_object() {
        return format!("list:{}", type_of(&property["items"], todo));
    }
    if property["additionalProperties"].is_object() {
        return format!("map:{}", type_of(&property["additionalProperties"], todo));
    }
    match (property["type"].as_str(), property["format"].as_str()) {
        (Some("string"), Some("byte")) => "bytes".to_owned(),
        (Some("integer"), Some("int64")) => "long".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) => "raw".to_owned(),
    }
}

/// What becomes of an absent member, and of a zero.
fn absence(kind: &str, flags: &str, property: &Value) -> Option<&'static str> {
    let is_time = property.to_string().contains("meta.v1.Time\"") || property.to_string().contains("MicroTime\"");
    match (kind, flags) {
        (_, flags) if flags.contains("omitzero") => None,
        ("struct", _) if is_time => Some("absent=null"),
        ("struct", _) => Some("absent=zero"),
        (kind, "") if kind.starts_with('*') || matches!(kind, "slice" | "map") => Some("absent=null"),
        (_, "") => Some("absent=zero"),
        (kind, _) if kind.starts_with('*') || matches!(kind, "slice" | "map") => None,
        _ => Some("zero=drop"),
    }
}
