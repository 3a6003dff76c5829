//! Lists that are sets or maps: nothing twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::{ListType, Schema, path};
use crate::status::FieldError;

pub(super) fn check(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, object, "", &mut errors);
    errors
}

fn walk(schema: &Schema, value: &Value, at: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(known) = schema.properties.get(name) {
                    walk(known, member, &path::member(at, name), errors);
                } else if let Some(entries) = &schema.additional_properties {
                    walk(entries, member, &path::entry(at, name), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list_type {
                ListType::Atomic => {}
                ListType::Set => set(items, at, errors),
                ListType::Map(keys) => map(items, keys, at, errors),
            }
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    walk(item_schema, item, &path::item(at, index), errors);
                }
            }
        }
        _ => {}
    }
}

/// Each value that occurs more than once is told at its second place.
fn set(items: &[Value], at: &str, errors: &mut Vec<FieldError>) {
    let mut seen = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        repeat(&mut seen, item.clone(), at, index, errors);
    }
}

fn map(items: &[Value], keys: &[String], at: &str, errors: &mut Vec<FieldError>) {
    let mut seen = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::Null => {}
            Value::Object(members) => {
                let key: Map<String, Value> =
                    keys.iter().filter_map(|name| Some((name.clone(), members.get(name)?.clone()))).collect();
                repeat(&mut seen, Value::Object(key), at, index, errors);
            }
            other => {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(path::item(at, index), other.clone(), detail));
            }
        }
    }
}

fn repeat(seen: &mut HashMap<String, usize>, value: Value, at: &str, index: usize, errors: &mut Vec<FieldError>) {
    let count = seen.entry(crate::sorted::text(&value)).or_default();
    *count += 1;
    if *count == 2 {
        errors.push(FieldError::duplicate(path::item(at, index), value));
    }
}
