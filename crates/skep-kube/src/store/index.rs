//! The current objects, in memory.
//!
//! Nested by resource, namespace and name, so that the long names are kept once and a page starts where the last one
//! ended without a scan.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::key::{Key, compare_namespaces};
use super::record::Record;

#[derive(Debug, Default)]
pub(super) struct Index {
    resources: BTreeMap<Arc<str>, Vec<Namespace>>,
}

/// The objects of one resource in one namespace. Kept in a sorted list: there are few of them, and their order is not
/// the one that strings have (`compare_namespaces`).
#[derive(Debug)]
struct Namespace {
    name: Arc<str>,
    records: BTreeMap<Arc<str>, Arc<Record>>,
}

impl Index {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        let namespaces = self.resources.get(&key.resource)?;
        let place = find(namespaces, &key.namespace).ok()?;
        namespaces.get(place)?.records.get(&key.name)
    }

    /// The same key, sharing the text of its long-lived parts with the records that are already there.
    pub(super) fn intern(&self, key: Key) -> Key {
        let Some((resource, namespaces)) = self.resources.get_key_value(&key.resource) else { return key };
        let namespace = find(namespaces, &key.namespace).ok().and_then(|place| namespaces.get(place));
        let namespace = namespace.map_or(key.namespace, |namespace| namespace.name.clone());
        Key { resource: resource.clone(), namespace, name: key.name }
    }

    pub(super) fn insert(&mut self, record: Arc<Record>) {
        let namespaces = self.resources.entry(record.key.resource.clone()).or_default();
        let place = find(namespaces, &record.key.namespace).unwrap_or_else(|place| {
            namespaces.insert(place, Namespace { name: record.key.namespace.clone(), records: BTreeMap::new() });
            place
        });
        if let Some(namespace) = namespaces.get_mut(place) {
            namespace.records.insert(record.key.name.clone(), record);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some(namespaces) = self.resources.get_mut(&key.resource) else { return };
        let Ok(place) = find(namespaces, &key.namespace) else { return };
        if let Some(namespace) = namespaces.get_mut(place) {
            namespace.records.remove(&key.name);
            if namespace.records.is_empty() {
                namespaces.remove(place);
            }
        }
        if namespaces.is_empty() {
            self.resources.remove(&key.resource);
        }
    }

    /// The records of a resource in order, starting after a (namespace, name).
    pub(super) fn scan<'a>(
        &'a self,
        resource: &str,
        namespace: Option<&'a str>,
        after: Option<(&'a str, &'a str)>,
    ) -> impl Iterator<Item = &'a Arc<Record>> {
        let namespaces = self.resources.get(resource).map_or(&[][..], Vec::as_slice);
        let chosen = match namespace {
            None => namespaces,
            Some(name) => find(namespaces, name).ok().and_then(|place| namespaces.get(place..=place)).unwrap_or(&[]),
        };
        chosen.iter().flat_map(move |namespace| {
            let start = match after {
                None => Some(Bound::Unbounded),
                Some((last, name)) => match compare_namespaces(last, &namespace.name) {
                    Ordering::Less => Some(Bound::Unbounded),
                    Ordering::Equal => Some(Bound::Excluded(name)),
                    Ordering::Greater => None,
                },
            };
            start
                .into_iter()
                .flat_map(|start| namespace.records.range::<str, _>((start, Bound::Unbounded)))
                .map(|(_, record)| record)
        })
    }
}

fn find(namespaces: &[Namespace], name: &str) -> Result<usize, usize> {
    namespaces.binary_search_by(|namespace| compare_namespaces(&namespace.name, name))
}
