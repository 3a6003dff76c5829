//! What was found out before, for as long as it is used and there is room.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;

/// Answers that weigh so much together are remembered for sure, and at most twice as much. What was used lately is young. When
/// that is too much, it becomes what was used before, and the rest is forgotten.
#[derive(Debug)]
pub(super) struct Remembered<K, V> {
    most: usize,
    weight: usize,
    young: HashMap<K, Weighed<V>, RandomState>,
    old: HashMap<K, Weighed<V>, RandomState>,
}

#[derive(Debug)]
struct Weighed<V> {
    value: V,
    weight: usize,
}

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    /// Nothing yet. What is weighed, in bytes or one by one, is for those to say who add something.
    pub(super) fn new(most: usize) -> Self {
        Self { most, weight: 0, young: HashMap::default(), old: HashMap::default() }
    }

    pub(super) fn find<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(known) = self.young.get(key) {
            return Some(known.value.clone());
        }
        let (key, Weighed { value, weight }) = self.old.remove_entry(key)?;
        self.add(key, value.clone(), weight);
        Some(value)
    }

    /// What weighs more than everything may is not remembered.
    pub(super) fn add(&mut self, key: K, value: V, weight: usize) {
        if weight > self.most {
            return;
        }
        if self.weight + weight > self.most {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        let replaced = self.young.insert(key, Weighed { value, weight });
        self.weight += weight;
        self.weight -= replaced.map_or(0, |replaced| replaced.weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let most = 16;
        let mut remembered = Remembered::new(most);
        remembered.add("used".to_owned(), 7, 1);
        for number in 0..10 * most {
            remembered.add(number.to_string(), number, 1);
            assert_eq!(remembered.find("used"), Some(7), "{number}");
        }
        assert!(remembered.young.len() <= most && remembered.old.len() <= most);
        assert_eq!(remembered.find("0"), None);
    }

    #[test]
    fn what_weighs_much_leaves_room_for_little() {
        let mut remembered = Remembered::new(100);
        for number in 0..1000 {
            remembered.add(number, (), number % 60);
            let weight = |known: &HashMap<usize, Weighed<()>, RandomState>| {
                known.values().map(|known| known.weight).sum::<usize>()
            };
            assert_eq!(weight(&remembered.young), remembered.weight);
            assert!(remembered.weight <= 100 && weight(&remembered.old) <= 100, "{number}");
        }
        remembered.add(7, (), 10);
        remembered.add(7, (), 20);
        remembered.add(8, (), 101);
        assert_eq!((remembered.find(&7), remembered.find(&8)), (Some(()), None));
    }
}
