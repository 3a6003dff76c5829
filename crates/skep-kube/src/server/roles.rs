//! Roles and bindings as the store has them.
//!
//! They follow the store and never a request: a request can be dropped once its change is committed, and two of them
//! can end in another order than their changes.

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;

use crate::auth::rbac::{GROUP, RoleIndex};
use crate::store::{Event, Follower, Key, News, Record, Selection, Store};

const KINDS: [(&str, &str); 4] = [
    ("roles", "Role"),
    ("clusterroles", "ClusterRole"),
    ("rolebindings", "RoleBinding"),
    ("clusterrolebindings", "ClusterRoleBinding"),
];

/// The roles and bindings of a store.
#[derive(Debug)]
pub(crate) struct Roles {
    store: Store,
    followed: RwLock<Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    index: RoleIndex,
    follower: Follower,
}

impl Roles {
    pub(crate) fn of(store: Store) -> Self {
        Self { store, followed: RwLock::default() }
    }

    /// The roles after every change that has been acknowledged.
    pub(crate) fn now(&self) -> MappedRwLockReadGuard<'_, RoleIndex> {
        let mut followed = self.followed.read();
        if !followed.follower.is_current(&self.store) {
            drop(followed);
            let mut behind = self.followed.write();
            behind.catch_up(&self.store);
            followed = RwLockWriteGuard::downgrade(behind);
        }
        RwLockReadGuard::map(followed, |followed| &followed.index)
    }
}

impl Followed {
    fn catch_up(&mut self, store: &Store) {
        match self.follower.catch_up(store, |key| kind_of(key).is_some()) {
            News::Changes(events) => events.iter().for_each(|event| self.take(event)),
            News::Everything => {
                let resources = KINDS.map(|(plural, _)| format!("{GROUP}/{plural}"));
                let records = resources.iter().flat_map(|resource| store.list(&Selection::all(resource)).records);
                let documents: Vec<Value> = records.filter_map(|record| document(&record)).collect();
                self.index = RoleIndex::from_documents(&documents);
            }
        }
    }

    fn take(&mut self, event: &Event) {
        let Some(document) = document(event.record()) else {
            return;
        };
        if event.after().is_some() {
            self.index.apply(&document);
        } else {
            self.index.remove(&document);
        }
    }
}

fn kind_of(key: &Key) -> Option<&'static str> {
    let (group, plural) = key.resource.split_once('/')?;
    let (_, kind) = KINDS.into_iter().find(|(known, _)| group == GROUP && *known == plural)?;
    Some(kind)
}

/// Stored objects do not say what they are; the index wants to know.
fn document(record: &Record) -> Option<Value> {
    let mut document: Value = serde_json::from_slice(&record.object.bytes()).ok()?;
    document["kind"] = kind_of(&record.key)?.into();
    Some(document)
}
