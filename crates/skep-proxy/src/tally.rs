//! How many of something everybody has, so that nobody has too many.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Counts by whose something is. Whoever has nothing takes no room.
#[derive(Debug)]
pub(crate) struct Tally<K>(HashMap<K, usize>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Tally<K> {
    /// How many somebody has.
    pub(crate) fn of<Q: Eq + Hash + ?Sized>(&self, whose: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.0.get(whose).copied().unwrap_or_default()
    }

    /// Somebody has one more.
    pub(crate) fn add(&mut self, whose: K) {
        *self.0.entry(whose).or_default() += 1;
    }

    /// Somebody has one less.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, whose: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some(count) = self.0.get_mut(whose) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(whose);
            }
        }
    }

    /// All who have something.
    pub(crate) fn all(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_nothing_takes_no_room() {
        let mut tally = Tally::default();
        tally.add("ann");
        tally.add("ann");
        tally.add("bob");
        assert_eq!(["ann", "bob", "eve"].map(|whose| tally.of(&whose)), [2, 1, 0]);
        for whose in ["ann", "bob", "ann", "eve"] {
            tally.remove(&whose);
        }
        assert!(tally.is_empty());
    }
}
