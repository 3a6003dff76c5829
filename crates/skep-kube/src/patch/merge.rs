//! JSON merge patches (RFC 7386). Unlike the RFC, and like the real server, nulls inside lists of objects vanish too.

use serde_json::{Map, Value};

use super::{PatchError, Patched};
use crate::decode::decode;
use crate::go_text::type_name;

pub(super) fn apply(document: &[u8], object: &Value) -> Result<Patched, PatchError> {
    let malformed = |problem: String| PatchError::Malformed(format!("error decoding patch: {problem}"));
    let decoded = decode(document).map_err(|error| malformed(error.to_string()))?;
    let patch = match decoded.value {
        Value::Object(patch) => patch,
        Value::Null => return Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        other => {
            let found = type_name(&other);
            return Err(malformed(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let mut merged = object.as_object().cloned().unwrap_or_default();
    merge(&mut merged, patch);
    Ok(Patched { object: Value::Object(merged), oddities: decoded.duplicates, patch: None })
}

fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(&name), value) {
            (_, Value::Null) => {
                target.remove(&name);
            }
            (Some(Value::Object(inner)), Value::Object(patch)) => merge(inner, patch),
            (_, mut value) => {
                remove_nulls(&mut value);
                target.insert(name, value);
            }
        }
    }
}

/// Removes members that are null, at any depth. Items of lists stay, so that the others keep their places.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
