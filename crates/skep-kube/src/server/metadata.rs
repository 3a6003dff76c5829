//! The metadata of an object, read and written in place.

use serde_json::{Map, Value};

/// A member of `metadata` that is a text.
pub fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

pub fn name(object: &Value) -> &str {
    text(object, "name")
}

pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

pub fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The metadata for writing; made when the object has none.
pub fn members(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    match &mut object["metadata"] {
        Value::Object(members) => members,
        // The line above made it an object.
        _ => unreachable!(),
    }
}

/// Sets a member, or removes it when there is nothing to set.
pub fn set(object: &mut Value, member: &str, value: Option<Value>) {
    let members = members(object);
    match value {
        Some(value) => {
            members.insert(member.to_owned(), value);
        }
        None => {
            members.remove(member);
        }
    }
}
