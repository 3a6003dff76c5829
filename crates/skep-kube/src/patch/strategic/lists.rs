//! How two lists become one.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::order::in_order;
use super::{Members, PATCH, directive_error, merge_maps, unknown_directive, without_directives};
use crate::patch::PatchError;
use crate::patch::display::{go_kind, shown};
use crate::schema::Schema;

/// What the schema says about a list.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    merge: bool,
    merge_key: Option<&'a str>,
    items: Option<&'a Schema>,
}

impl<'a> List<'a> {
    pub(super) fn of(schema: Option<&'a Schema>) -> Self {
        Self {
            merge: schema.is_some_and(|schema| schema.patch.merge),
            merge_key: schema.and_then(|schema| schema.patch.merge_key.as_deref()),
            items: schema.and_then(|schema| schema.items.as_deref()),
        }
    }

    /// The items of both lists. `deletes`: the patch names scalars to take out.
    pub(super) fn merge(
        self,
        original: Vec<Value>,
        patch: &mut [Value],
        deletes: bool,
    ) -> Result<Vec<Value>, PatchError> {
        if !self.merge && !deletes {
            return Ok(patch.iter().map(without_nulls).collect());
        }
        let maps = self.check_item_types(&original, patch)?;
        if deletes && !maps {
            return Ok(without(original, patch));
        }
        let server_order = self.places(&original);
        let patch_order = self.places(&without_special_items(patch));
        let merged = if maps { self.merge_maps_in(original, patch)? } else { union(original, patch) };
        Ok(in_order(merged, |item| self.loose_identity(item), &patch_order, &server_order))
    }

    /// As `merge`, in the order that the patch wants.
    pub(super) fn merge_in_order(
        self,
        original: Option<Vec<Value>>,
        patch: Option<&mut Vec<Value>>,
        order: &[Value],
    ) -> Result<Vec<Value>, PatchError> {
        let server_order = self.places(original.as_deref().unwrap_or_default());
        let patch_order = self.places_in_directive(order)?;
        if let Some(patch) = patch.as_deref() {
            self.check_order(patch, order, &patch_order)?;
        }
        let merged = match (original, patch) {
            (Some(original), Some(patch)) => self.merge(original, patch, false)?,
            (Some(original), None) => original,
            (None, Some(patch)) => patch.iter_mut().filter_map(without_directives).collect(),
            (None, None) => Vec::new(),
        };
        if !self.merge {
            return Ok(merged);
        }
        Ok(in_order(merged, |item| self.loose_identity(item), &patch_order, &server_order))
    }

    /// Every item of the patch must stand in the order, in the same succession.
    fn check_order(self, patch: &[Value], order: &[Value], places: &HashMap<String, usize>) -> Result<(), PatchError> {
        let mut next = 0;
        for item in patch.iter().filter(|item| !is_special(item)) {
            match places.get(&self.identity(item)?) {
                Some(place) if *place >= next => next = *place + 1,
                _ => {
                    return Err(directive_error(format!(
                        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                        shown(&Value::Array(patch.to_vec())),
                        shown(&Value::Array(order.to_vec())),
                    )));
                }
            }
        }
        Ok(())
    }

    /// All items must be of one type. Whether that type is a map.
    fn check_item_types(self, original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
        let mut items = original.iter().chain(patch);
        let Some(first) = items.next() else { return Ok(self.merge_key.is_some()) };
        let kind = go_kind(first);
        if first.is_null() || items.any(|item| go_kind(item) != kind) {
            let both = Value::Array(vec![Value::Array(original.to_vec()), Value::Array(patch.to_vec())]);
            return Err(directive_error(format!("list element types are not identical: {}", shown(&both))));
        }
        Ok(first.is_object())
    }

    fn merge_maps_in(self, original: Vec<Value>, patch: &mut [Value]) -> Result<Vec<Value>, PatchError> {
        let mut merged = match self.obey_special_items(original, patch)? {
            Outcome::Replaced => return Ok(without_special_items(patch).iter().map(without_nulls).collect()),
            Outcome::Kept(items) => items,
        };
        let mut places = self.places(&merged);
        for item in patch.iter_mut().filter(|item| !is_special(item)) {
            let key = self.identity(item)?;
            match (places.get(&key).and_then(|place| merged.get_mut(*place)), &mut *item) {
                (Some(Value::Object(found)), Value::Object(patch)) => {
                    *found = merge_maps(std::mem::take(found), patch, self.items)?;
                }
                _ => {
                    if let Some(added) = without_directives(item) {
                        places.insert(key, merged.len());
                        merged.push(added);
                    }
                }
            }
        }
        Ok(merged)
    }

    /// Deletes what the patch says is to be deleted, unless it replaces everything.
    fn obey_special_items(self, original: Vec<Value>, patch: &[Value]) -> Result<Outcome, PatchError> {
        let mut deleted = HashSet::new();
        let mut replaced = false;
        for item in patch {
            let Some((map, directive)) = item.as_object().and_then(|map| Some((map, map.get(PATCH)?))) else {
                continue;
            };
            match directive.as_str() {
                Some("delete") => {
                    deleted.insert(self.identity(item)?);
                }
                Some("replace") => replaced = true,
                Some("merge") => return Err(directive_error("merging lists cannot yet be specified in the patch")),
                _ => return Err(unknown_directive(directive, map)),
            }
        }
        if replaced {
            return Ok(Outcome::Replaced);
        }
        let kept = original.into_iter().filter(|item| !deleted.contains(&self.loose_identity(item)));
        Ok(Outcome::Kept(kept.collect()))
    }

    /// What makes an item the same as another: its merge key, or itself if it is a scalar.
    fn identity(self, item: &Value) -> Result<String, PatchError> {
        match (self.merge_key, item) {
            (Some(key), Value::Object(members)) => members.get(key).map(Value::to_string).ok_or_else(|| {
                let map = shown(item);
                directive_error(format!("map: {map} does not contain declared merge key: {key}"))
            }),
            (None, Value::Object(_)) => Err(directive_error("cannot merge lists of maps without a merge key")),
            _ => Ok(item.to_string()),
        }
    }

    /// As `identity`, for items that the patch is not to blame for.
    fn loose_identity(self, item: &Value) -> String {
        self.identity(item).unwrap_or_else(|_| Value::Null.to_string())
    }

    /// Where each item stands. The first of several equal ones counts.
    fn places(self, items: &[Value]) -> HashMap<String, usize> {
        let mut places = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            places.entry(self.loose_identity(item)).or_insert(place);
        }
        places
    }

    fn places_in_directive(self, order: &[Value]) -> Result<HashMap<String, usize>, PatchError> {
        for (place, item) in order.iter().enumerate() {
            if self.merge_key.is_some() && !item.is_object() {
                return Err(directive_error(format!("value for key {place} is not a map")));
            }
            self.identity(item)?;
        }
        Ok(self.places(order))
    }
}

enum Outcome {
    Replaced,
    Kept(Vec<Value>),
}

fn is_special(item: &Value) -> bool {
    item.as_object().is_some_and(|map: &Members| map.contains_key(PATCH))
}

fn without_special_items(patch: &[Value]) -> Vec<Value> {
    patch.iter().filter(|item| !is_special(item)).cloned().collect()
}

/// Both lists, each scalar once.
fn union(original: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    original.into_iter().chain(patch.iter().cloned()).filter(|item| seen.insert(item.to_string())).collect()
}

fn without(original: Vec<Value>, deleted: &[Value]) -> Vec<Value> {
    let deleted: HashSet<String> = deleted.iter().map(Value::to_string).collect();
    original.into_iter().filter(|item| !deleted.contains(&item.to_string())).collect()
}

/// A value that replaces another as it is. Members that are null are the same as absent ones.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}
