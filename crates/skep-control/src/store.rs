//! Things by the name of the object that they belong to. Most names are in few namespaces: each of those is named once.

use std::collections::BTreeMap;

use crate::key::Key;

/// Things by namespace and name, sorted.
#[derive(Debug)]
pub(crate) struct Store<T> {
    places: BTreeMap<Box<str>, BTreeMap<Box<str>, T>>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { places: BTreeMap::new() }
    }
}

impl<T> Store<T> {
    pub(crate) fn insert(&mut self, key: &Key, thing: T) -> Option<T> {
        let Some(place) = self.places.get_mut(key.namespace.as_str()) else {
            let place = BTreeMap::from([(key.name.as_str().into(), thing)]);
            self.places.insert(key.namespace.as_str().into(), place);
            return None;
        };
        place.insert(key.name.as_str().into(), thing)
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<T> {
        let place = self.places.get_mut(key.namespace.as_str())?;
        let removed = place.remove(key.name.as_str());
        if place.is_empty() {
            self.places.remove(key.namespace.as_str());
        }
        removed
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&T> {
        self.places.get(key.namespace.as_str())?.get(key.name.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.places.values().map(BTreeMap::len).sum()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        let keys = |(namespace, place)| names_of(place).map(move |name| Key::new(namespace, name));
        self.places.iter().flat_map(|(namespace, place)| keys((namespace.as_ref(), place))).collect()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.values().flat_map(BTreeMap::values)
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.places.get(namespace).into_iter().flat_map(BTreeMap::values)
    }

    /// Puts `others` in the place of everything in a namespace, or of everything if that has no name. Returns what was
    /// there.
    pub(crate) fn replace(&mut self, namespace: &str, others: Self) -> Self {
        if namespace.is_empty() {
            return std::mem::replace(self, others);
        }
        let before = self.places.remove_entry(namespace);
        self.places.extend(others.places);
        Self { places: before.into_iter().collect() }
    }
}

fn names_of<T>(place: &BTreeMap<Box<str>, T>) -> impl Iterator<Item = &str> {
    place.keys().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(things: &[(&str, &str, u8)]) -> Store<u8> {
        let mut store = Store::default();
        for (namespace, name, thing) in things {
            assert_eq!(store.insert(&Key::new(*namespace, *name), *thing), None);
        }
        store
    }

    #[test]
    fn things_are_found_by_name_and_by_namespace() {
        let mut store = store(&[("b", "x", 1), ("a", "z", 2), ("b", "w", 3), ("", "c", 4)]);
        assert_eq!((store.len(), store.get(&Key::new("b", "x")), store.get(&Key::new("a", "x"))), (4, Some(&1), None));
        assert_eq!(store.values().copied().collect::<Vec<_>>(), [4, 2, 3, 1]);
        assert_eq!(store.in_namespace("b").copied().collect::<Vec<_>>(), [3, 1]);
        assert_eq!(store.in_namespace("c").count(), 0);
        assert_eq!(store.insert(&Key::new("b", "x"), 5), Some(1));
        assert_eq!(store.remove(&Key::new("b", "x")), Some(5));
        assert_eq!(store.remove(&Key::new("b", "x")), None);
        assert_eq!(store.keys(), [Key::new("", "c"), Key::new("a", "z"), Key::new("b", "w")]);
        store.remove(&Key::new("b", "w"));
        assert_eq!(store.places.len(), 2, "a namespace without objects is forgotten");
    }

    #[test]
    fn a_namespace_is_replaced_without_the_others() {
        let mut all = store(&[("a", "x", 1), ("b", "y", 2), ("b", "z", 3)]);
        let before = all.replace("b", store(&[("b", "z", 4)]));
        assert_eq!(before.keys(), [Key::new("b", "y"), Key::new("b", "z")]);
        assert_eq!(all.values().copied().collect::<Vec<_>>(), [1, 4]);
        assert_eq!(all.replace("b", Store::default()).len(), 1);
        assert_eq!(all.replace("", store(&[("c", "x", 5)])).len(), 1);
        assert_eq!(all.keys(), [Key::new("c", "x")]);
    }
}
