//! JSON values as CEL sees them, by their schema.

use std::sync::Arc;

use base64::Engine;
use chrono::{DateTime, NaiveDate};
use kube_cel::cel::objects::Key;
use serde_json::Value;

use super::super::{ListType, Schema, Type, duration};
use super::list::{List, Order};
use super::value::{Entries, Value as Cel};

/// Words that CEL keeps for itself; a field of that name is written with underscores around it.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A value as rules see it: only what the schema knows. `whole` says that it is a whole object, of which rules see the
/// version, the kind and the name.
pub(super) fn convert(schema: &Schema, value: &Value, whole: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if schema.type_ != Some(Type::Number) => Cel::Int(integer),
            _ => Cel::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => convert_text(schema, text),
        Value::Array(items) => {
            let item = |item: &Value| schema.items.as_ref().map(|known| convert(known, item, known.embedded_resource));
            Cel::List(Arc::new(List { items: items.iter().filter_map(item).collect(), order: order(schema) }))
        }
        Value::Object(members) => {
            let mut entries = Entries::new();
            for (name, member) in members {
                let converted = match (schema.properties.get(name), &schema.additional_properties) {
                    _ if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => plain(name, member),
                    (Some(known), _) => known_value(known, member).map(|value| (escape(name), value)),
                    (None, Some(known)) => known_value(known, member).map(|value| (name.clone(), value)),
                    (None, None) => None,
                };
                if let Some((name, value)) = converted {
                    entries.insert(Key::String(Arc::new(name)), value);
                }
            }
            entries.into()
        }
    }
}

/// What tells the items of a list apart.
fn order(schema: &Schema) -> Order {
    match &schema.list_type {
        ListType::Atomic => Order::Place,
        ListType::Set => Order::Set,
        // By the names that they have in the schema, as on the server: a key whose name is escaped tells nothing apart.
        ListType::Map(keys) => Order::Keys(keys.iter().cloned().collect()),
    }
}

/// What has no type is not seen at all.
fn known_value(schema: &Schema, value: &Value) -> Option<Cel> {
    (schema.type_.is_some() || schema.int_or_string).then(|| convert(schema, value, schema.embedded_resource))
}

/// What rules see of the parts that every object has.
fn plain(name: &str, member: &Value) -> Option<(String, Cel)> {
    let text = |value: &Value| value.as_str().map(Cel::from);
    if name != "metadata" {
        return Some((name.to_owned(), text(member)?));
    }
    let mut entries = Entries::new();
    for known in ["name", "generateName"] {
        if let Some(value) = member.get(known).and_then(text) {
            entries.insert(Key::from(known), value);
        }
    }
    Some((name.to_owned(), entries.into()))
}

fn convert_text(schema: &Schema, text: &str) -> Cel {
    let format = schema.format.as_deref().filter(|_| schema.type_ == Some(Type::String));
    let converted = match format {
        Some("date-time" | "datetime") => DateTime::parse_from_rfc3339(text).ok().map(Cel::Timestamp),
        Some("date") => NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()
            .and_then(|date| date.and_hms_opt(0, 0, 0))
            .map(|time| Cel::Timestamp(time.and_utc().fixed_offset())),
        Some("duration") => duration::parse(text).map(Cel::Duration),
        Some("byte") => {
            base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    converted.unwrap_or_else(|| text.into())
}

/// The name of a field in CEL.
pub(crate) fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    // A single underscore is plain; two would look like an escape.
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
