//! Strategic merge patches: merge patches that know how lists are put together, and that carry directives.
//!
//! | directive | where | what it does |
//! |---|---|---|
//! | `$patch: replace` or `delete` | a map | takes the patch instead of what is there, or nothing |
//! | `$patch: replace` or `delete` | an item of a list | replaces the whole list by the other items, or deletes one item |
//! | `$retainKeys` | a map | removes every member that is not in the list |
//! | `$setElementOrder/<field>` | beside a list | the order of the items afterwards |
//! | `$deleteFromPrimitiveList/<field>` | beside a list | scalars to take out of it |
//!
//! The patch is changed on the way (directives and nulls vanish from it), because what is left of it stands in the
//! message when the result turns out not to be an object of the kind.

mod lists;
mod order;

use serde_json::{Map, Value};

use super::conversion::convert;
use super::display::{as_text, go_type, shown};
use super::{PatchError, Patched};
use crate::decode::decode;
use crate::go_text::type_name;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

type Members = Map<String, Value>;

pub(super) fn apply(document: &[u8], object: &Value, schema: Option<&Schema>) -> Result<Patched, PatchError> {
    let decoded = decode(document).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut patch = match decoded.value {
        Value::Object(patch) => patch,
        Value::Null => Members::new(),
        other => {
            let found = type_name(&other);
            let problem = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            return Err(PatchError::Malformed(problem));
        }
    };
    let merged = merge_maps(object.as_object().cloned().unwrap_or_default(), &mut patch, schema)?;
    let mut merged = Value::Object(merged);
    let patch = Value::Object(patch);
    if let Some(schema) = schema {
        convert(&mut merged, schema).map_err(|problem| PatchError::Unconvertible { shown: shown(&patch), problem })?;
    }
    // A patch cannot make an object of another kind, and is not told so.
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name) {
            merged[name] = value.clone();
        }
    }
    Ok(Patched { object: merged, oddities: decoded.duplicates, patch: Some(patch) })
}

fn directive_error(problem: impl Into<String>) -> PatchError {
    PatchError::Directive(problem.into())
}

fn unknown_directive(directive: &Value, map: &Members) -> PatchError {
    let map = shown(&Value::Object(map.clone()));
    directive_error(format!("unknown patch type: {} in map: {map}", as_text(directive)))
}

fn merge_maps(mut original: Members, patch: &mut Members, schema: Option<&Schema>) -> Result<Members, PatchError> {
    match patch.get(PATCH) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(PATCH);
            return Ok(patch.clone());
        }
        Some(directive) if directive == "delete" => return Ok(Members::new()),
        Some(directive) => return Err(unknown_directive(directive, patch)),
    }
    retain_keys(&mut original, patch)?;
    order::merge_ordered_lists(&mut original, patch, schema)?;

    for (name, value) in patch.iter_mut() {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM_LIST) {
            None => (name.as_str(), false),
            Some(field) => (field_of(field, "invalid patch format of primitive list")?, true),
        };
        merge_member(
            &mut original,
            name,
            value,
            deletes,
            schema.and_then(|schema| schema.member(name)).map(AsRef::as_ref),
        )?;
    }
    Ok(original)
}

/// What stands behind the slash of a directive.
fn field_of<'a>(rest: &'a str, complaint: &str) -> Result<&'a str, PatchError> {
    rest.strip_prefix('/').ok_or_else(|| PatchError::Malformed(complaint.to_owned()))
}

fn retain_keys(original: &mut Members, patch: &mut Members) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let keys: std::collections::HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive = |name: &str| name.starts_with(ELEMENT_ORDER) || name.starts_with(DELETE_FROM_LIST);
    let contradicts =
        |(name, value): (&String, &Value)| !value.is_null() && !is_directive(name) && !keys.contains(name.as_str());
    if patch.iter().any(contradicts) {
        return Err(malformed());
    }
    original.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

fn merge_member(
    original: &mut Members,
    name: &str,
    value: &mut Value,
    deletes: bool,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(name);
        return Ok(());
    }
    let merged = match (original.get_mut(name), &mut *value) {
        (Some(Value::Object(inner)), Value::Object(patch)) => {
            Some(Value::Object(merge_maps(std::mem::take(inner), patch, schema)?))
        }
        (Some(Value::Array(items)), Value::Array(patch)) => {
            let list = lists::List::of(schema);
            Some(Value::Array(list.merge(std::mem::take(items), patch, deletes)?))
        }
        // There is nothing to delete, or nothing that could be a list to delete from.
        _ if deletes => return Ok(()),
        (_, patch) => without_directives(patch),
    };
    match merged {
        Some(merged) => {
            original.insert(name.to_owned(), merged);
        }
        None => {
            original.remove(name);
        }
    }
    Ok(())
}

/// A value that meets nothing to be merged with: nulls vanish, from the patch too; maps with a directive are as good
/// as absent.
fn without_directives(value: &mut Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            let clean = |(name, member): (&String, &mut Value)| Some((name.clone(), without_directives(member)?));
            Some(Value::Object(members.iter_mut().filter_map(clean).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter_mut().filter_map(without_directives).collect())),
        other => Some(other.clone()),
    }
}

/// The list that a directive is about.
fn expect_list(value: &Value) -> Result<&Vec<Value>, PatchError> {
    let wrong = || directive_error(format!("expected a []interface {{}}, but received a {}", go_type(value)));
    value.as_array().ok_or_else(wrong)
}
