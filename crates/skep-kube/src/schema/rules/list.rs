//! Lists. Those of a schema may be sets, or have items with keys; then their order does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_cel::cel::objects::Key;

use super::value::{Value, member};

#[derive(Clone)]
pub(super) struct List {
    pub items: Vec<Value>,
    pub order: Order,
}

/// What tells the items of a list apart.
#[derive(Clone)]
pub(super) enum Order {
    /// Their place.
    Place,
    /// Themselves: `x-kubernetes-list-type: set`.
    Set,
    /// These members: `x-kubernetes-list-type: map`.
    Keys(Arc<[String]>),
}

/// The values of an item's keys, as far as it has them.
type Identity = Vec<Option<Key>>;

impl List {
    pub(super) fn plain(items: Vec<Value>) -> Self {
        Self { items, order: Order::Place }
    }

    /// The item that is asked for says what counts.
    pub(super) fn contains(&self, item: &Value) -> bool {
        self.items.iter().any(|known| item.equals(known))
    }

    /// The list on the left says what counts.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        match &self.order {
            Order::Place => self.items.iter().zip(&other.items).all(|(one, other)| one.equals(other)),
            Order::Set => {
                let known = Known::of(&self.items);
                other.items.iter().all(|item| known.contains(item))
            }
            Order::Keys(keys) => {
                let known = by_identity(keys, &self.items);
                let same = |item: &Value| {
                    known.get(&identity(keys, item)).is_some_and(|index| self.items[*index].equals(item))
                };
                other.items.iter().all(same)
            }
        }
    }

    /// Both lists in one. A set takes only what it does not have; an item with known keys replaces the one that has
    /// them.
    pub(super) fn append(&mut self, other: &Self) {
        match &self.order {
            Order::Place => self.items.extend(other.items.iter().cloned()),
            Order::Set => {
                let known = Known::of(&self.items);
                let new: Vec<Value> = other.items.iter().filter(|item| !known.contains(item)).cloned().collect();
                self.items.extend(new);
            }
            Order::Keys(keys) => {
                let known = by_identity(keys, &self.items);
                for item in &other.items {
                    match known.get(&identity(keys, item)) {
                        Some(index) => self.items[*index] = item.clone(),
                        None => self.items.push(item.clone()),
                    }
                }
            }
        }
    }
}

/// Values that are asked for often: those that can be keys are not searched for.
struct Known<'a> {
    keys: BTreeSet<Key>,
    others: Vec<&'a Value>,
}

impl<'a> Known<'a> {
    fn of(items: &'a [Value]) -> Self {
        let mut known = Self { keys: BTreeSet::new(), others: Vec::new() };
        for item in items {
            match item.key() {
                Some(key) => drop(known.keys.insert(key)),
                None => known.others.push(item),
            }
        }
        known
    }

    fn contains(&self, item: &Value) -> bool {
        item.key().is_some_and(|key| self.keys.contains(&key)) || self.others.iter().any(|known| known.equals(item))
    }
}

fn by_identity(keys: &[String], items: &[Value]) -> BTreeMap<Identity, usize> {
    items.iter().enumerate().map(|(index, item)| (identity(keys, item), index)).collect()
}

fn identity(keys: &[String], item: &Value) -> Identity {
    let Value::Map(entries) = item else { return Vec::new() };
    keys.iter().map(|name| member(entries, name).and_then(Value::key)).collect()
}
