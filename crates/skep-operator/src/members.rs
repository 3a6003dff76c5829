//! Members of JSON objects that are made where they are missing.

use serde_json::{Map, Value, json};

/// A member that is there and is something else than it has to be.
#[derive(Debug, thiserror::Error)]
#[error("{0} has the wrong type")]
pub(crate) struct WrongType(String);

/// A member that is an object; absent and null are an empty one.
pub(crate) fn object<'a>(
    members: &'a mut Map<String, Value>,
    name: &str,
) -> Result<&'a mut Map<String, Value>, WrongType> {
    let member = members.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = json!({});
    }
    member.as_object_mut().ok_or_else(|| WrongType(name.to_owned()))
}

/// A member that is a list; absent and null are an empty one.
pub(crate) fn list<'a>(members: &'a mut Map<String, Value>, name: &str) -> Result<&'a mut Vec<Value>, WrongType> {
    let member = members.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = json!([]);
    }
    member.as_array_mut().ok_or_else(|| WrongType(name.to_owned()))
}

/// The container of that name in the spec of a pod.
pub(crate) fn container<'a>(
    pod: &'a mut Map<String, Value>,
    name: &str,
) -> Result<&'a mut Map<String, Value>, WrongType> {
    let containers = list(pod, "containers")?;
    let place = containers.iter().position(|container| container["name"] == name);
    let place = place.unwrap_or_else(|| {
        containers.push(json!({"name": name}));
        containers.len() - 1
    });
    containers.get_mut(place).and_then(Value::as_object_mut).ok_or_else(|| WrongType("containers".to_owned()))
}
