//! Who names whom: kept from the watches, and asked whenever an object must know its users.

use std::collections::{BTreeSet, HashMap};

use parking_lot::RwLock;

use crate::id::ObjectId;

/// Every reference between objects, both ways. Only what is in a spec counts.
#[derive(Debug, Default)]
pub struct References {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    targets: HashMap<ObjectId, BTreeSet<ObjectId>>,
    referrers: HashMap<ObjectId, BTreeSet<ObjectId>>,
}

impl References {
    /// Notes what an object names now and returns the targets that gained or lost it as a user.
    pub fn set(&self, referrer: &ObjectId, targets: BTreeSet<ObjectId>) -> Vec<ObjectId> {
        let mut state = self.state.write();
        let before = state.targets.remove(referrer).unwrap_or_default();
        for target in targets.difference(&before) {
            state.referrers.entry(target.clone()).or_default().insert(referrer.clone());
        }
        for target in before.difference(&targets) {
            if let Some(referrers) = state.referrers.get_mut(target) {
                referrers.remove(referrer);
                if referrers.is_empty() {
                    state.referrers.remove(target);
                }
            }
        }
        let changed = before.symmetric_difference(&targets).cloned().collect();
        if !targets.is_empty() {
            state.targets.insert(referrer.clone(), targets);
        }
        changed
    }

    /// The objects that name a target, sorted by kind and name.
    pub fn referrers(&self, target: &ObjectId) -> Vec<ObjectId> {
        self.state.read().referrers.get(target).into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(kind: &'static str, name: &str) -> ObjectId {
        ObjectId::new(kind, "ns", name)
    }

    #[test]
    fn both_the_old_and_the_new_target_are_told() {
        let references = References::default();
        let server = id("MCPServer", "s");
        let (one, other) = (id("MCPOIDCConfig", "one"), id("MCPOIDCConfig", "other"));
        assert_eq!(references.set(&server, [one.clone()].into()), std::slice::from_ref(&one));
        assert_eq!(references.set(&server, [one.clone()].into()), []);
        assert_eq!(references.set(&server, [other.clone()].into()), [one.clone(), other.clone()]);
        assert_eq!(references.referrers(&one), []);
        assert_eq!(references.referrers(&other), std::slice::from_ref(&server));
        assert_eq!(references.set(&server, BTreeSet::new()), std::slice::from_ref(&other));
        assert_eq!(references.referrers(&other), []);
        let state = references.state.read();
        assert!(state.targets.is_empty() && state.referrers.is_empty(), "nothing is left behind: {state:?}");
    }
}
