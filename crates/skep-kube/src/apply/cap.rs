//! Objects that very many managers update must not grow without bound.

use std::collections::BTreeMap;

use super::entry::{Operation, Owner, Owners, seconds};

/// How many updating managers are told apart.
const LIMIT: usize = 10;
/// Owns what the oldest updates did.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Merges the oldest updates of each version into one entry until there are few enough.
pub(super) fn forget_old_updates(owners: &mut Owners) {
    let mut updaters: Vec<Owner> =
        owners.keys().filter(|owner| owner.operation == Operation::Update).cloned().collect();
    let mut count = updaters.len();
    updaters.sort_by_cached_key(|owner| (owners.get(owner).map(seconds), owner.clone()));
    let mut oldest: BTreeMap<Option<String>, Owner> = BTreeMap::new();
    for updater in updaters {
        if count <= LIMIT {
            return;
        }
        let bucket = Owner {
            manager: ANCIENT_CHANGES.to_owned(),
            operation: Operation::Update,
            api_version: updater.api_version.clone(),
            subresource: String::new(),
        };
        // The first of each version waits for a second one to be merged with.
        let Some(first) = oldest.get(&updater.api_version) else {
            oldest.insert(updater.api_version.clone(), updater);
            continue;
        };
        if !owners.contains_key(&bucket)
            && let Some(holding) = owners.remove(first)
        {
            owners.insert(bucket.clone(), holding);
        }
        if let Some(holding) = owners.get(&updater).cloned()
            && let Some(ancient) = owners.get_mut(&bucket)
        {
            ancient.fields = ancient.fields.union(&holding.fields);
            ancient.time = holding.time;
        }
        // When the bucket is itself not the oldest, the real server drops it here, and so is it done here.
        owners.remove(&updater);
        count -= 1;
    }
}
