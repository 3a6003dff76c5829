//! The rules of the store, one file for each part of them.

mod commit;
mod damage;
mod durability;
mod follower;
mod list;
mod model;
mod reopen;
mod watch;

use std::path::Path;

use super::*;

pub(super) const PODS: &str = "/pods";

pub(super) fn pod(namespace: &str, name: &str) -> Key {
    Key::new(PODS, namespace, name)
}

pub(super) fn content(text: &str) -> Content {
    Content { object: text.into(), labels: [("text", text)].into_iter().collect() }
}

pub(super) fn memory() -> Store {
    Store::open(None).unwrap()
}

/// A store that keeps only so many events.
pub(super) fn forgetful(events: usize) -> Store {
    let history = HistoryLimits { events, ..HistoryLimits::default() };
    Store::open_with(None, Options { history, ..Options::default() }).unwrap()
}

/// A store on disk that does not wait for the disk.
pub(super) fn on_disk(folder: &Path) -> Result<Store, OpenError> {
    Store::open_with(Some(folder), Options { durability: Durability::None, ..Options::default() })
}

pub(super) async fn create(store: &Store, key: &Key, text: &str) -> u64 {
    store.commit(Change::Create { key: key.clone(), content: content(text) }).await.unwrap().revision
}

pub(super) async fn update(store: &Store, key: &Key, text: &str) -> u64 {
    let expected = store.get(key).unwrap().revision;
    store.commit(Change::Update { key: key.clone(), expected, content: content(text) }).await.unwrap().revision
}

pub(super) async fn delete(store: &Store, key: &Key) -> u64 {
    let expected = store.get(key).unwrap().revision;
    store.commit(Change::Delete { key: key.clone(), expected }).await.unwrap().revision
}

/// The texts of a page's objects.
pub(super) fn texts(page: &Page) -> Vec<String> {
    page.records.iter().map(text).collect()
}

fn text(record: &Arc<Record>) -> String {
    String::from_utf8(record.object.bytes().into()).unwrap()
}

/// An event in short: revision, what happened, texts before and after.
pub(super) fn brief(event: &Event) -> String {
    match &event.change {
        Changed::Created { after } => format!("{} +{}", event.revision, text(after)),
        Changed::Updated { before, after } => format!("{} {}>{}", event.revision, text(before), text(after)),
        Changed::Deleted { before } => format!("{} -{}", event.revision, text(before)),
    }
}
