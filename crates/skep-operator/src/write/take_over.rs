//! Taking over what another field manager has written.
//!
//! An apply removes what its own manager applied before and does not say any more. What anybody else has written stays for
//! ever, what an operator before this one wrote included, unless its entries in `managedFields` become ours first.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Value, json};

/// What a write means by which a manager says all that it wants.
const APPLY: &str = "Apply";

/// The entries of an object as they are when `manager` has applied all that is in those of its predecessors; `None` when it
/// has no predecessor.
pub(crate) fn taken_over(
    entries: &[ManagedFieldsEntry],
    manager: &str,
    is_predecessor: impl Fn(&ManagedFieldsEntry) -> bool,
) -> Option<Vec<ManagedFieldsEntry>> {
    // What is written to `/status` or `/scale` is nobody's desire.
    let is_whole = |entry: &ManagedFieldsEntry| entry.subresource.as_deref().unwrap_or_default().is_empty();
    let is_ours = |entry: &ManagedFieldsEntry| {
        is_whole(entry) && entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(APPLY)
    };
    let is_theirs = |entry: &ManagedFieldsEntry| is_whole(entry) && !is_ours(entry) && is_predecessor(entry);
    let mut entry = entries.iter().find(|entry| is_theirs(entry))?.clone();
    let mut fields = Value::default();
    for taken in entries.iter().filter(|entry| is_theirs(entry) || is_ours(entry)) {
        if let Some(FieldsV1(taken)) = &taken.fields_v1 {
            unite(&mut fields, taken);
        }
    }
    entry.manager = Some(manager.to_owned());
    entry.operation = Some(APPLY.to_owned());
    entry.fields_v1 = Some(FieldsV1(fields));
    let others = entries.iter().filter(|entry| !is_theirs(entry) && !is_ours(entry)).cloned();
    Some(others.chain([entry]).collect())
}

/// The entries of an object as they are when `manager` has applied all that anybody has written below some places; `None` when
/// nobody else has written there.
pub(crate) fn claimed(
    entries: &[ManagedFieldsEntry],
    manager: &str,
    places: &[&[&str]],
) -> Option<Vec<ManagedFieldsEntry>> {
    let is_ours = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(APPLY)
    };
    let mut entries = entries.to_vec();
    let mut taken = Value::Null;
    for FieldsV1(fields) in
        entries.iter_mut().filter(|entry| !is_ours(entry)).filter_map(|entry| entry.fields_v1.as_mut())
    {
        for place in places {
            if let Some(found) = take(fields, place) {
                let nested = place.iter().rev().fold(found, |below, name| json!({*name: below}));
                unite(&mut taken, &nested);
            }
        }
    }
    let FieldsV1(ours) = entries.iter_mut().find(|entry| is_ours(entry))?.fields_v1.as_mut()?;
    if taken.is_null() {
        return None;
    }
    unite(ours, &taken);
    Some(entries)
}

/// Takes what is at a place out of a set of fields.
fn take(fields: &mut Value, place: &[&str]) -> Option<Value> {
    let (last, above) = place.split_last()?;
    let members = above.iter().try_fold(fields, |fields, name| fields.get_mut(*name))?;
    members.as_object_mut()?.remove(*last)
}

/// Adds the fields of one set to another.
fn unite(all: &mut Value, more: &Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (name, below) in more {
                unite(all.entry(name.clone()).or_insert(Value::Null), below);
            }
        }
        (all, more) => all.clone_from(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> ManagedFieldsEntry {
        let entry = json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields});
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn entries_of_predecessors_become_one_of_ours() {
        let is_old = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some("old");
        let foreign = entry("kubectl", "Update", "", &json!({"f:x": {}}));
        let status = entry("old", "Update", "status", &json!({"f:status": {}}));
        let ours = entry("new", "Apply", "", &json!({"f:a": {"f:b": {}}}));
        assert_eq!(taken_over(&[foreign.clone(), status.clone(), ours.clone()], "new", is_old), None);
        let old = entry("old", "Update", "", &json!({"f:a": {"f:c": {}}}));
        let found = taken_over(&[foreign.clone(), old, status.clone(), ours], "new", is_old).unwrap();
        let united = entry("new", "Apply", "", &json!({"f:a": {"f:c": {}, "f:b": {}}}));
        assert_eq!(found, [foreign, status, united]);
    }

    #[test]
    fn what_others_wrote_into_ours_can_be_claimed() {
        let place: &[&str] = &["f:spec", "f:ports"];
        let ours = entry("new", "Apply", "", &json!({"f:spec": {"f:type": {}}}));
        let other = entry("kubectl", "Update", "", &json!({"f:metadata": {}, "f:spec": {"f:ports": {"k:1": {}}}}));
        let found = claimed(&[other, ours.clone()], "new", &[place]).unwrap();
        let left = entry("kubectl", "Update", "", &json!({"f:metadata": {}, "f:spec": {}}));
        let all = entry("new", "Apply", "", &json!({"f:spec": {"f:type": {}, "f:ports": {"k:1": {}}}}));
        assert_eq!(found, [left.clone(), all]);
        assert_eq!(claimed(&[left, ours], "new", &[place]), None);
    }
}
