//! Taking fields out of an object.

use serde_json::Value;

use super::field_set::{Entry, FieldSet};
use super::path::PathElement;
use super::shape::{Kind, Place};

/// The value without the fields of a set. A map or list of which nothing is left is null.
pub(super) fn without(place: Place<'_>, value: &Value, fields: &FieldSet) -> Value {
    match place.shape().of(Some(value)).kind() {
        Kind::Scalar => value.clone(),
        // Nothing is owned inside of an atomic list, so nothing can be taken out of it and leave the rest.
        Kind::List(list) if list.is_atomic() => Value::Null,
        Kind::List(list) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let rest: Vec<Value> = items
                .iter()
                .filter_map(|item| {
                    let element = list.element(item).ok();
                    rest_of(list.items, item, element.and_then(|element| fields.entry(&element)))
                })
                .collect();
            if rest.is_empty() { Value::Null } else { Value::Array(rest) }
        }
        Kind::Map(map) => {
            let rest: serde_json::Map<String, Value> = value
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(name, member)| {
                    let place = map.member(name).unwrap_or(Place::Deduced);
                    let rest = rest_of(place, member, fields.entry(&PathElement::field(name)))?;
                    Some((name.clone(), rest))
                })
                .collect();
            if rest.is_empty() { Value::Null } else { Value::Object(rest) }
        }
    }
}

fn rest_of(place: Place<'_>, value: &Value, entry: Option<&Entry>) -> Option<Value> {
    match entry {
        None => Some(value.clone()),
        Some(entry) if entry.member => None,
        Some(entry) => Some(without(place, value, &entry.below)),
    }
}
