//! What a write changes: the fields that it adds, modifies and removes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::FieldSet;
use super::path::{PathElement, same_value};
use super::shape::{Kind, List, Map, Place, Shape};

/// The difference between two versions of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// Compares two versions of an object that both fit the schema.
    pub(super) fn between(place: Place<'_>, old: &Value, new: &Value) -> Self {
        let mut walk = Walk { path: Vec::new(), found: Self::default() };
        walk.visit(place, Some(old), Some(new));
        walk.found
    }

    /// What has a new value.
    pub(super) fn changed(&self) -> FieldSet {
        self.added.union(&self.modified)
    }
}

struct Walk {
    path: Vec<PathElement>,
    found: Comparison,
}

/// Whether a place was compared as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    AsLeaf,
    Inside,
}

impl Walk {
    fn visit(&mut self, place: Place<'_>, old: Option<&Value>, new: Option<&Value>) {
        if old.is_none() && new.is_none() {
            return;
        }
        let shape = place.shape();
        let (old_shape, new_shape) = (shape.of(old), shape.of(new));
        let compared = if new.is_none() {
            self.visit_shape(old_shape, old, new)
        } else {
            // A place that has changed its kind has lost what it was and gained what it is.
            if old.is_some() && !old_shape.is_like(&new_shape) {
                self.visit_shape(old_shape, old, new);
            }
            self.visit_shape(new_shape, old, new)
        };
        if compared == Compared::Inside {
            if old.is_none() {
                self.found.added.insert(&self.path);
            } else if new.is_none() {
                self.found.removed.insert(&self.path);
            }
        }
    }

    fn visit_shape(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Compared {
        match shape.kind() {
            Kind::Scalar => self.visit_leaf(old, new),
            Kind::List(list) => {
                let old_items = items(old);
                let new_items = items(new);
                // Both empty: the difference between an empty list and none is a difference of leaves.
                if list.is_atomic() || old_items.is_empty() && new_items.is_empty() {
                    return self.visit_leaf(old, new);
                }
                self.visit_items(&list, old_items, new_items);
                Compared::Inside
            }
            Kind::Map(map) => {
                let old_members = old.and_then(Value::as_object).filter(|members| !members.is_empty());
                let new_members = new.and_then(Value::as_object).filter(|members| !members.is_empty());
                if map.atomic || old_members.is_none() && new_members.is_none() {
                    return self.visit_leaf(old, new);
                }
                self.visit_members(&map, old_members, new_members);
                Compared::Inside
            }
        }
    }

    fn visit_leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> Compared {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !same_value(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
        Compared::AsLeaf
    }

    fn visit_members(
        &mut self,
        map: &Map<'_>,
        old: Option<&serde_json::Map<String, Value>>,
        new: Option<&serde_json::Map<String, Value>>,
    ) {
        let mut names: Vec<&String> = old.into_iter().chain(new).flat_map(serde_json::Map::keys).collect();
        names.sort();
        names.dedup();
        for name in names {
            self.path.push(PathElement::field(name));
            let place = map.member(name).unwrap_or(Place::Deduced);
            self.visit(place, old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            self.path.pop();
        }
    }

    fn visit_items(&mut self, list: &List<'_>, old: &[Value], new: &[Value]) {
        let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in pairs {
            self.path.push(element);
            self.visit_item(list, &old, &new);
            self.path.pop();
        }
    }

    /// Items that cannot be told apart are compared together, as one leaf.
    fn visit_item(&mut self, list: &List<'_>, old: &[&Value], new: &[&Value]) {
        match (old, new) {
            ([] | [_], [] | [_]) => self.visit(list.items, old.first().copied(), new.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same_value(old, new));
                if !same {
                    self.found.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                self.visit(list.items, None, new.first().copied());
                self.found.removed.insert(&self.path);
            }
            (_, _) => {
                self.visit(list.items, old.first().copied(), None);
                self.found.added.insert(&self.path);
            }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
