//! The fields that an applied configuration has an opinion about: its leaves, the members of maps, and the items of
//! lists. Structs are not: they are there because their members are.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::FieldSet;
use super::path::PathElement;
use super::shape::{Kind, List, Map, Place};

pub(super) fn fields_of(place: Place<'_>, value: &Value) -> FieldSet {
    let mut walk = Walk { path: Vec::new(), fields: FieldSet::default() };
    walk.visit(place, value);
    walk.fields
}

struct Walk {
    path: Vec<PathElement>,
    fields: FieldSet,
}

impl Walk {
    fn add(&mut self) {
        self.fields.insert(&self.path);
    }

    fn visit(&mut self, place: Place<'_>, value: &Value) {
        match place.shape().of(Some(value)).kind() {
            Kind::Scalar => self.add(),
            Kind::List(list) => self.visit_list(&list, value),
            Kind::Map(map) => self.visit_map(&map, value),
        }
    }

    fn visit_map(&mut self, map: &Map<'_>, value: &Value) {
        match value.as_object() {
            Some(members) if !map.atomic => {
                for (name, member) in members {
                    self.path.push(PathElement::field(name));
                    let is_empty = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
                    if is_empty || map.field(name).is_none() {
                        self.add();
                    }
                    self.visit(map.member(name).unwrap_or(Place::Deduced), member);
                    self.path.pop();
                }
            }
            _ => self.add(),
        }
    }

    /// An empty list that is not atomic is no opinion: there is no item to own.
    fn visit_list(&mut self, list: &List<'_>, value: &Value) {
        if list.is_atomic() {
            return self.add();
        }
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let named: Vec<_> = items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
        let mut counts: BTreeMap<&PathElement, usize> = BTreeMap::new();
        for (element, _) in &named {
            *counts.entry(element).or_default() += 1;
        }
        for (element, item) in &named {
            self.path.push(element.clone());
            self.add();
            // Items that cannot be told apart are owned together, as wholes.
            if counts.get(element) == Some(&1) {
                self.visit(list.items, item);
            }
            self.path.pop();
        }
    }
}
