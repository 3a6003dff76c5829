//! What was found out before, for as long as it is used and there is room.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// So many answers are remembered for sure, and at most twice as many. What was used lately is young. When that is too much,
/// it becomes what was used before, and the rest is forgotten.
#[derive(Debug)]
pub(super) struct Remembered<K, V> {
    most: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, young: HashMap::new(), old: HashMap::new() }
    }

    pub(super) fn find<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.add(key, value.clone());
        Some(value)
    }

    pub(super) fn add(&mut self, key: K, value: V) {
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let most = 16;
        let mut remembered = Remembered::new(most);
        remembered.add("used".to_owned(), 7);
        for number in 0..10 * most {
            remembered.add(number.to_string(), number);
            assert_eq!(remembered.find("used"), Some(7), "{number}");
        }
        assert!(remembered.young.len() <= most && remembered.old.len() <= most);
        assert_eq!(remembered.find("0"), None);
    }
}
