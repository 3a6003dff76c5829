//! Sets of paths: what a manager owns, or what a write changes.

use std::collections::BTreeMap;

use super::path::PathElement;

/// A set of paths into one object. The object itself, the empty path, is never in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<PathElement, Entry>,
}

/// What a set says about one element: invariant, at least one of the two says something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    /// The longer paths that begin here.
    pub(super) below: FieldSet,
}

impl Entry {
    fn says_nothing(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths of plain member names, written with dots: `metadata.labels`.
    pub fn of_fields(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        if let Some((first, rest)) = path.split_first() {
            let entry = self.entries.entry(first.clone()).or_default();
            if rest.is_empty() {
                entry.member = true;
            } else {
                entry.below.insert(rest);
            }
        }
    }

    /// Whether exactly this path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.entries
            .get(first)
            .is_some_and(|entry| if rest.is_empty() { entry.member } else { entry.below.contains(rest) })
    }

    /// Every path; of those with the same beginning, first the ones that end there.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, _) in self.entries.iter().filter(|(_, entry)| entry.member) {
            prefix.push(element.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for (element, entry) in &self.entries {
            prefix.push(element.clone());
            entry.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, theirs) in &other.entries {
            let entry = union.entries.entry(element.clone()).or_default();
            entry.member |= theirs.member;
            entry.below = entry.below.union(&theirs.below);
        }
        union
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |ours, theirs| {
            theirs.map(|theirs| Entry {
                member: ours.member && theirs.member,
                below: ours.below.intersection(&theirs.below),
            })
        })
    }

    /// The paths that are not in the other set. Paths below one that is in the other set stay.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, |ours, theirs| {
            Some(theirs.map_or_else(
                || ours.clone(),
                |theirs| Entry { member: ours.member && !theirs.member, below: ours.below.difference(&theirs.below) },
            ))
        })
    }

    /// The paths that are neither in the other set nor below one that is.
    #[must_use]
    pub fn outside(&self, other: &Self) -> Self {
        self.combined(other, |ours, theirs| match theirs {
            None => Some(ours.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Entry { member: ours.member, below: ours.below.outside(&theirs.below) }),
        })
    }

    /// The paths that are in the other set or below one that is.
    #[must_use]
    pub fn inside(&self, other: &Self) -> Self {
        self.combined(other, |ours, theirs| match theirs {
            None => None,
            Some(theirs) if theirs.member => Some(ours.clone()),
            Some(theirs) => Some(Entry { member: false, below: ours.below.inside(&theirs.below) }),
        })
    }

    /// The paths that no longer path begins with.
    #[must_use]
    pub fn leaves(&self) -> Self {
        self.combined(&Self::default(), |ours, _| {
            Some(Entry { member: ours.member && ours.below.is_empty(), below: ours.below.leaves() })
        })
    }

    fn combined(&self, other: &Self, combine: impl Fn(&Entry, Option<&Entry>) -> Option<Entry>) -> Self {
        let entries = self
            .entries
            .iter()
            .filter_map(|(element, ours)| Some((element.clone(), combine(ours, other.entries.get(element))?)))
            .filter(|(_, entry)| !entry.says_nothing())
            .collect();
        Self { entries }
    }

    pub(super) const fn entries(&self) -> &BTreeMap<PathElement, Entry> {
        &self.entries
    }

    pub(super) fn entry(&self, element: &PathElement) -> Option<&Entry> {
        self.entries.get(element)
    }

    /// Adds what is said about an element, unless it is nothing.
    pub(super) fn put(&mut self, element: PathElement, entry: Entry) {
        if !entry.says_nothing() {
            self.entries.insert(element, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        FieldSet::of_fields(paths)
    }

    #[test]
    fn the_algebra_of_sets() {
        let left = set(&["a", "a.b", "a.c.d", "e"]);
        let right = set(&["a", "a.c.d", "f"]);
        assert_eq!(left.union(&right), set(&["a", "a.b", "a.c.d", "e", "f"]));
        assert_eq!(left.intersection(&right), set(&["a", "a.c.d"]));
        assert_eq!(left.difference(&right), set(&["a.b", "e"]));
        assert_eq!(left.difference(&left), FieldSet::default());
    }

    #[test]
    fn prefixes_hide_or_keep_all_that_is_below() {
        let owned = set(&["spec", "spec.a", "status.phase", "metadata.labels.a"]);
        assert_eq!(owned.outside(&set(&["spec", "metadata.labels"])), set(&["status.phase"]));
        assert_eq!(owned.inside(&set(&["status"])), set(&["status.phase"]));
    }

    #[test]
    fn leaves_have_nothing_below() {
        assert_eq!(set(&["a", "a.b", "c"]).leaves(), set(&["a.b", "c"]));
    }
}
