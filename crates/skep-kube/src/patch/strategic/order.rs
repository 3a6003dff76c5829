//! The order of merged lists: what the patch names comes in the order of the patch, what it does not name keeps its
//! place among the others as well as it can.

use std::collections::HashMap;

use serde_json::Value;

use super::lists::List;
use super::{ELEMENT_ORDER, Members, directive_error, expect_list, field_of};
use crate::patch::PatchError;
use crate::schema::{Schema, Type};

/// Merges the lists whose order the patch sets, and takes them and the directives out of it.
pub(super) fn merge_ordered_lists(
    original: &mut Members,
    patch: &mut Members,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let rest = directive.get(ELEMENT_ORDER.len()..).unwrap_or_default();
        let field = field_of(rest, "invalid patch format of setElementOrder list")?;
        let order = expect_list(&order)?;
        original.get(field).map(expect_list).transpose()?;
        patch.get(field).map(expect_list).transpose()?;
        let list = list_at(field, schema)?;

        let mut patched = patch.remove(field);
        let existing = original.remove(field);
        if patched.is_none() && existing.is_none() {
            continue;
        }
        let existing =
            existing.and_then(|existing| if let Value::Array(items) = existing { Some(items) } else { None });
        let merged = list.merge_in_order(existing, patched.as_mut().and_then(Value::as_array_mut), order)?;
        original.insert(field.to_owned(), Value::Array(merged));
    }
    Ok(())
}

fn list_at<'a>(field: &str, schema: Option<&'a Schema>) -> Result<List<'a>, PatchError> {
    let Some(schema) = schema else { return Ok(List::of(None)) };
    let Some(property) = schema.properties.get(field) else {
        return Err(directive_error(if schema.properties.is_empty() {
            "merging an object in json but data type is not struct, instead is: map".to_owned()
        } else {
            // The real server names the Go type here, which nobody else knows.
            format!("unable to find api field in struct for the json field {field:?}")
        }));
    };
    match property.type_ {
        Some(Type::Array) | None => Ok(List::of(Some(property))),
        Some(Type::Object) => Err(directive_error("expected slice or array type, but got: struct")),
        Some(other) => Err(directive_error(format!("expected slice or array type, but got: {}", other.name()))),
    }
}

/// Puts the items of a merged list in order. The maps give the places of items by their identity.
pub(super) fn in_order(
    merged: Vec<Value>,
    identity: impl Fn(&Value) -> String,
    patch_order: &HashMap<String, usize>,
    server_order: &HashMap<String, usize>,
) -> Vec<Value> {
    let mut patched = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let key = identity(&item);
        let on_server = server_order.get(&key).copied();
        match patch_order.get(&key) {
            Some(place) => patched.push((*place, on_server, item)),
            None => others.push((on_server, item)),
        }
    }
    patched.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(on_server, _)| *on_server);

    let mut result = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in patched {
        // Only items that the server knows both of have places to compare.
        let stands_before = |other: &Option<usize>| place.zip(*other).is_some_and(|(place, other)| other < place);
        while let Some((_, other)) = others.next_if(|(other, _)| stands_before(other)) {
            result.push(other);
        }
        result.push(item);
    }
    result.extend(others.map(|(_, other)| other));
    result
}
