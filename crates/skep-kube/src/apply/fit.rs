//! Field sets in the light of a schema.

use super::field_set::{Entry, FieldSet};
use super::path::PathElement;
use super::shape::{Kind, Map, Place};

/// The set with every struct that it has fields of. Structs are usually left out of sets; for the arithmetic of
/// removing fields they count, because a struct of which no field is left goes as well.
pub(super) fn with_structs(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let kind = place.shape().kind();
    let mut complete = FieldSet::default();
    for (element, entry) in set.entries() {
        let is_struct_field = match (element, kind) {
            (PathElement::Field(name), Kind::Map(map)) => map.field(name).is_some(),
            _ => false,
        };
        let member = entry.member || is_struct_field && !entry.below.is_empty();
        let below = with_structs(place_of(kind, element), &entry.below);
        complete.put(element.clone(), Entry { member, below });
    }
    complete
}

/// The set after the schema has changed: whoever owned a part of what has become atomic owns the whole. The other way
/// there is nothing to do, an owner of the whole is one of the parts that it writes next.
pub(super) fn fitted(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let mut result = FieldSet::default();
    for (element, entry) in set.entries() {
        let place = place_of(place.shape().kind(), element);
        let is_atomic = match place.shape().kind() {
            Kind::Map(map) if map.is_deduced() => {
                result.put(element.clone(), entry.clone());
                continue;
            }
            Kind::Map(Map { atomic, .. }) => atomic,
            Kind::List(list) => list.is_atomic(),
            Kind::Scalar => false,
        };
        let entry = if is_atomic && !entry.below.is_empty() {
            Entry { member: true, below: FieldSet::default() }
        } else {
            Entry { member: entry.member, below: fitted(place, &entry.below) }
        };
        result.put(element.clone(), entry);
    }
    result
}

fn place_of<'a>(kind: Kind<'a>, element: &PathElement) -> Place<'a> {
    match (kind, element) {
        (Kind::Map(map), PathElement::Field(name)) => map.member(name).unwrap_or(Place::Deduced),
        (Kind::List(list), PathElement::Key(_) | PathElement::Value(_)) => list.items,
        _ => Place::Deduced,
    }
}
