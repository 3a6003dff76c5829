//! Merging an applied configuration into the live object: what is applied wins, what it does not mention stays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map as Members, Value};

use super::path::PathElement;
use super::shape::{Kind, List, Map, Place};

/// Merges two values that both fit the schema.
pub(super) fn merge(place: Place<'_>, live: &Value, applied: &Value) -> Value {
    merge_places(place, Some(live), Some(applied)).unwrap_or_else(|| Value::Object(Members::new()))
}

fn merge_places(place: Place<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let shape = if applied.is_some() { place.shape().of(applied) } else { place.shape().of(live) };
    let leaf = || applied.or(live).cloned();
    match shape.kind() {
        Kind::Scalar => leaf(),
        Kind::List(list) => {
            let (live_items, applied_items) = (items(live), items(applied));
            if list.is_atomic() || live_items.is_empty() && applied_items.is_empty() {
                return leaf();
            }
            let merged = merge_items(&list, live_items, applied_items);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Kind::Map(map) => {
            let (live_members, applied_members) = (members(live), members(applied));
            if map.atomic || live_members.is_none() && applied_members.is_none() {
                return leaf();
            }
            let merged = merge_members(&map, live_members, applied_members);
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn members(value: Option<&Value>) -> Option<&Members<String, Value>> {
    value.and_then(Value::as_object).filter(|members| !members.is_empty())
}

fn merge_members(
    map: &Map<'_>,
    live: Option<&Members<String, Value>>,
    applied: Option<&Members<String, Value>>,
) -> Members<String, Value> {
    let mut merged = Members::new();
    for name in live.into_iter().chain(applied).flat_map(Members::keys) {
        if !merged.contains_key(name) {
            let place = map.member(name).unwrap_or(Place::Deduced);
            let (live, applied) = (live.and_then(|live| live.get(name)), applied.and_then(|applied| applied.get(name)));
            if let Some(value) = merge_places(place, live, applied) {
                merged.insert(name.clone(), value);
            }
        }
    }
    merged
}

/// Items in both lists take the order of the applied list; items of the live list alone keep their place before the
/// shared item that follows them, as far as that is possible.
fn merge_items(list: &List<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let live = Named::new(list, live);
    let applied = Named::new(list, applied);
    let mut shared: VecDeque<&PathElement> =
        applied.items.iter().map(|(element, _)| element).filter(|element| live.by_name.contains_key(element)).collect();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut from_live, mut from_applied) = (live.items.iter().peekable(), applied.items.iter().peekable());
    loop {
        let next_applied = from_applied.peek().map(|(element, _)| element);
        if let Some((element, item)) = from_live.peek() {
            if !applied.by_name.contains_key(element) {
                merged.extend(merge_places(list.items, Some(item), None));
                from_live.next();
                continue;
            }
            let is_next = next_applied == Some(element);
            // A shared item is written where the applied list has it, and skipped where the live list has it.
            if !is_next && next_applied.is_some() && shared.front().is_some_and(|next| *next != element) {
                from_live.next();
                continue;
            }
            if is_next || done.contains(element) {
                from_live.next();
            }
        }
        let Some((element, item)) = from_applied.next() else {
            if from_live.peek().is_none() {
                break;
            }
            continue;
        };
        // A live item that stands there twice is not merged: it cannot be told which one is meant.
        let live_item = live.by_name.get(element).copied().flatten();
        merged.extend(merge_places(list.items, live_item, Some(item)));
        done.insert(element);
        if shared.front() == Some(&element) {
            shared.pop_front();
        }
    }
    merged
}

/// The items of a list with their names.
struct Named<'a> {
    items: Vec<(PathElement, &'a Value)>,
    /// Each item by its name; none when several have it.
    by_name: BTreeMap<PathElement, Option<&'a Value>>,
}

impl<'a> Named<'a> {
    fn new(list: &List<'_>, items: &'a [Value]) -> Self {
        let items: Vec<_> = items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
        let mut by_name = BTreeMap::new();
        for (element, item) in &items {
            by_name.entry(element.clone()).and_modify(|known| *known = None).or_insert(Some(*item));
        }
        Self { items, by_name }
    }
}
