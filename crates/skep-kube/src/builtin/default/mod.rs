//! What the server fills in where an object says nothing.

mod others;
mod pod;
mod service;
mod workload;

use serde_json::{Map, Value};

pub(super) use pod::is_shared_in_pods;

use super::Builtin;

/// Fills in an object of a built-in kind, and puts it into canonical form.
pub fn default(kind: &Builtin, object: &mut Value) {
    // Members of structs that are always there ({} at least) have to exist before they can be filled in.
    super::canonical(kind, object);
    match kind.kind {
        "Pod" => pod::pod(object),
        "Service" => service::service(object),
        "Deployment" => workload::deployment(object),
        "ReplicaSet" => workload::replica_set(object),
        "StatefulSet" => workload::stateful_set(object),
        "PersistentVolumeClaim" => workload::claim(object),
        _ => others::default(kind.kind, object),
    }
    super::canonical(kind, object);
}

/// Sets a member that is absent.
fn fill(object: &mut Value, name: &str, value: impl Into<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    if members.get(name).is_none_or(Value::is_null) {
        members.insert(name.to_owned(), value.into());
    }
}

/// Sets a member that is absent, or zero where zero means the same.
fn fill_zero(object: &mut Value, name: &str, value: impl Into<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    let unset = members.get(name).is_none_or(|found| found.is_null() || *found == "" || *found == 0);
    if unset {
        members.insert(name.to_owned(), value.into());
    }
}

/// The members of a struct, if it is there.
fn with(object: &mut Value, name: &str, mut change: impl FnMut(&mut Value)) {
    if let Some(member) = object.get_mut(name).filter(|member| member.is_object()) {
        change(member);
    }
}

/// Each item of a list, if it is there.
fn each(object: &mut Value, name: &str, change: impl FnMut(&mut Value)) {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

fn empty() -> Value {
    Value::Object(Map::new())
}
