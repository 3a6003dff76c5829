//! What the cluster looked like a moment ago: one watched copy of every object of a kind, shared by all controllers.
//!
//! A controller that has written waits until its own write shows up here ([`Cache::until`]). That way its next pass
//! never acts on a state from before its last one, and no bookkeeping of expected changes is needed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::key::Key;

/// A write that is not seen by then (a broken watch) does not hold up the controller any longer.
const SEEN_LIMIT: Duration = Duration::from_secs(5);

type Handler<K> = Box<dyn Fn(&K) + Send + Sync>;

pub(super) struct Cache<K> {
    objects: RwLock<BTreeMap<Key, Arc<K>>>,
    handlers: RwLock<Vec<Handler<K>>>,
    /// The newest resourceVersion seen, counted up with every event.
    version: watch::Sender<u64>,
    complete: watch::Sender<bool>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            handlers: RwLock::default(),
            version: watch::Sender::new(0),
            complete: watch::Sender::new(false),
        }
    }
}

impl<K> Debug for Cache<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").field("objects", &self.objects.read().len()).finish_non_exhaustive()
    }
}

impl<K: ResourceExt + Clone + DeserializeOwned + Debug + Send + Sync + 'static> Cache<K> {
    /// Calls `handler` with every object that appears, changes (before and after) or goes.
    pub(super) fn on_change(&self, handler: impl Fn(&K) + Send + Sync + 'static) {
        self.handlers.write().push(Box::new(handler));
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.read().get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.objects.read().values().cloned().collect()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.objects.read();
        let from = Key::new(namespace, "");
        objects
            .range(from..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, found)| found.clone())
            .collect()
    }

    /// Waits until the first complete list has arrived.
    pub(super) async fn complete(&self) {
        // The sender lives in `self`, so this cannot fail while we wait.
        let _ = self.complete.subscribe().wait_for(|complete| *complete).await;
    }

    /// Waits until the object is here in at least this version, or has already gone again.
    pub(super) async fn until_seen(&self, object: &K) {
        let key = Key::of(object);
        let wanted = version_of(object);
        self.until(|newest| newest >= wanted || self.get(&key).is_some_and(|seen| version_of(seen.as_ref()) >= wanted))
            .await;
    }

    /// Waits until the object is gone, replaced or on its way out.
    pub(super) async fn until_deleting(&self, object: &K) {
        let key = Key::of(object);
        self.until(|_| {
            self.get(&key).is_none_or(|seen| seen.uid() != object.uid() || seen.meta().deletion_timestamp.is_some())
        })
        .await;
    }

    async fn until(&self, reached: impl Fn(u64) -> bool) {
        let mut version = self.version.subscribe();
        let waiting = version.wait_for(|newest| reached(*newest));
        // Both a timeout and a closed channel mean: go on with what there is.
        let _ = tokio::time::timeout(SEEN_LIMIT, waiting).await;
    }

    /// Follows the API server for ever.
    pub(super) async fn follow(self: Arc<Self>, api: Api<K>, config: watcher::Config) {
        let mut events = watcher::watcher(api, config).default_backoff().boxed();
        let mut listed: BTreeMap<Key, Arc<K>> = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(Key::of(&object), Arc::new(object));
                }
                Ok(Event::InitDone) => self.replace(&std::mem::take(&mut listed)),
                Ok(Event::Apply(object)) => {
                    let object = Arc::new(object);
                    let before = self.objects.write().insert(Key::of(object.as_ref()), object.clone());
                    self.tell(before.as_deref(), Some(&object));
                    self.count(version_of(object.as_ref()));
                }
                Ok(Event::Delete(object)) => {
                    let before = self.objects.write().remove(&Key::of(&object));
                    self.tell(before.as_deref(), Some(&object));
                    self.count(version_of(&object));
                }
                Err(error) => tracing::debug!(%error, "watch interrupted"),
            }
        }
    }

    fn replace(&self, listed: &BTreeMap<Key, Arc<K>>) {
        let newest = listed.values().map(|object| version_of(object.as_ref())).max().unwrap_or(0);
        let before = std::mem::replace(&mut *self.objects.write(), listed.clone());
        for (key, object) in &before {
            if !listed.contains_key(key) {
                self.tell(Some(object), None);
            }
        }
        for (key, object) in listed {
            self.tell(before.get(key).map(AsRef::as_ref), Some(object));
        }
        self.count(newest);
        self.complete.send_replace(true);
    }

    fn tell(&self, before: Option<&K>, after: Option<&K>) {
        for handler in self.handlers.read().iter() {
            for object in [before, after].into_iter().flatten() {
                handler(object);
            }
        }
    }

    fn count(&self, version: u64) {
        self.version.send_modify(|newest| *newest = version.max(*newest));
    }
}

/// Versions of one server are comparable as numbers; anything else counts as the beginning of time.
fn version_of<K: ResourceExt>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
