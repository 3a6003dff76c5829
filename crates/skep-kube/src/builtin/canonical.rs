//! The form in which the server keeps and shows built-in objects, whatever form they were sent in.
//!
//! The real server decodes into its own types and encodes again. Clients see traces of that: members without a value
//! vanish or appear as zero, quantities and times are rewritten. This does the same by the facts about each member.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::facts::{self, Absent, Is};
use super::{Builtin, Quantity};

/// Objects nested deeper than this are left alone below it; none of the built-in kinds comes near.
const DEPTH: usize = 64;

/// Puts an object of a built-in kind into canonical form.
pub fn canonical(kind: &Builtin, object: &mut Value) {
    let definition = kind.definition_name();
    if let Some(members) = object.as_object_mut() {
        structure(facts::short_name(&definition), members, DEPTH);
    }
}

/// Puts the metadata of any object into canonical form.
pub fn canonical_metadata(object: &mut Value) {
    if let Some(members) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        structure("meta.v1.ObjectMeta", members, DEPTH);
    }
}

fn structure(definition: &str, members: &mut Map<String, Value>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Some(facts) = facts::definition(definition) else { return };
    for (name, member) in &facts.members {
        match members.get_mut(*name) {
            None | Some(Value::Null) => {
                members.remove(*name);
                match member.absent {
                    Absent::Nothing => {}
                    Absent::Null => _ = members.insert((*name).to_owned(), Value::Null),
                    Absent::Zero => _ = members.insert((*name).to_owned(), zero(&member.is, depth)),
                }
            }
            Some(value) => {
                rewrite(&member.is, value, depth);
                let empty_collection = match (&member.is, &*value) {
                    (Is::List(_), Value::Array(items)) => items.is_empty(),
                    (Is::Map(_), Value::Object(items)) => items.is_empty(),
                    _ => false,
                };
                if empty_collection && member.absent == Absent::Null {
                    // The format in which all but definitions are stored knows no empty collections.
                    if !definition.starts_with("apiextensions.") {
                        *value = Value::Null;
                    }
                } else if empty_collection || (member.drops_zero && is_zero(value)) {
                    members.remove(*name);
                }
            }
        }
    }
}

fn rewrite(is: &Is, value: &mut Value, depth: usize) {
    match (is, value) {
        (Is::Struct(definition), Value::Object(members)) => structure(definition, members, depth),
        (Is::List(item), Value::Array(items)) => {
            for value in items {
                if value.is_null() {
                    *value = zero(item, depth);
                }
                rewrite(item, value, depth);
            }
        }
        (Is::Map(of), Value::Object(members)) => {
            for value in members.values_mut() {
                if value.is_null() {
                    *value = zero(of, depth);
                }
                rewrite(of, value, depth);
            }
        }
        (Is::Quantity, value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
            if let Some(quantity) = Quantity::parse(&text) {
                *value = quantity.canonical().into();
            }
        }
        (Is::Time, Value::String(text)) => {
            if let Some(seconds) = seconds(text) {
                *text = seconds;
            }
        }
        (Is::MicroTime, Value::String(text)) => {
            if let Some(micros) = micros(text) {
                *text = micros;
            }
        }
        _ => {}
    }
}

fn zero(is: &Is, depth: usize) -> Value {
    match is {
        Is::String | Is::Bytes => "".into(),
        Is::Integer | Is::Long | Is::Number | Is::IntOrString => 0.into(),
        Is::Boolean => false.into(),
        Is::Quantity => "0".into(),
        Is::Struct(definition) => {
            let mut members = Map::new();
            structure(definition, &mut members, depth);
            Value::Object(members)
        }
        Is::Time | Is::MicroTime | Is::List(_) | Is::Map(_) | Is::Raw => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

/// A time without fractions, in UTC.
fn seconds(text: &str) -> Option<String> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?.to_offset(time::UtcOffset::UTC);
    time.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()
}

/// A time with exactly six digits of fraction, in UTC.
fn micros(text: &str) -> Option<String> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?.to_offset(time::UtcOffset::UTC);
    let whole = time.replace_nanosecond(0).ok()?.format(&Rfc3339).ok()?;
    Some(format!("{}.{:06}Z", whole.trim_end_matches('Z'), time.microsecond()))
}
