//! What the cluster looked like a moment ago: one watched copy of every object of a kind, shared by all controllers.
//!
//! A controller that has written waits until its own write shows up here ([`Cache::until_seen`]). That way its next pass
//! never acts on a state from before its last one, and no bookkeeping of expected changes is needed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::key::Key;
use crate::trouble::{self, Trouble};

/// A write that is not seen by then (a broken watch) does not hold up the controller any longer.
const SEEN_LIMIT: Duration = Duration::from_secs(5);

/// One object before and after something happened to it.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a, K> {
    /// What was known of it, if it was known.
    pub before: Option<&'a K>,
    /// What it is now; of an object that is gone, what it was at the end, if that was told.
    pub now: Option<&'a K>,
    /// Whether the object is gone.
    pub gone: bool,
}

impl<'a, K> Change<'a, K> {
    /// The object as it is, unless it is gone.
    pub fn after(&self) -> Option<&'a K> {
        self.now.filter(|_| !self.gone)
    }
}

type Handler<K> = Box<dyn Fn(&Change<'_, K>) + Send + Sync>;

/// All objects of a kind, or of some namespaces: as many as there are calls of [`Cache::follow`].
pub struct Cache<K> {
    objects: RwLock<BTreeMap<Key, Arc<K>>>,
    handlers: RwLock<Vec<Handler<K>>>,
    followed: watch::Sender<Followed>,
}

/// How far each watch has come, by namespace; the empty one stands for all of them. A watch whose first list has not
/// arrived has not come anywhere.
type Followed = BTreeMap<String, Option<u64>>;

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            handlers: RwLock::default(),
            followed: watch::Sender::new(Followed::default()),
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
    pub fn on_change(&self, handler: impl Fn(&K) + Send + Sync + 'static) {
        self.on_transition(move |change| [change.before, change.now].into_iter().flatten().for_each(&handler));
    }

    /// Calls `handler` with everything that happens.
    pub fn on_transition(&self, handler: impl Fn(&Change<'_, K>) + Send + Sync + 'static) {
        self.handlers.write().push(Box::new(handler));
    }

    /// The object of this name.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.read().get(key).cloned()
    }

    /// Every object, sorted by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.objects.read().values().cloned().collect()
    }

    /// Every object of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.objects.read();
        let from = Key::new(namespace, "");
        objects
            .range(from..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, found)| found.clone())
            .collect()
    }

    /// Waits until the first complete list of every watch has arrived.
    pub async fn complete(&self) {
        let complete = |followed: &Followed| !followed.is_empty() && followed.values().all(Option::is_some);
        // The sender lives in `self`, so this cannot fail while we wait.
        let _ = self.followed.subscribe().wait_for(complete).await;
    }

    /// Waits until what was written is here in at least this version, or has already gone again.
    pub async fn until_seen(&self, written: &impl ResourceExt) {
        let key = Key::of(written);
        let wanted = version_of(written);
        self.until(&key, |newest| {
            newest >= wanted || self.get(&key).is_some_and(|seen| version_of(seen.as_ref()) >= wanted)
        })
        .await;
    }

    /// Waits until the object is gone, replaced or on its way out.
    pub async fn until_deleting(&self, object: &K) {
        let key = Key::of(object);
        self.until(&key, |_| {
            self.get(&key).is_none_or(|seen| seen.uid() != object.uid() || seen.meta().deletion_timestamp.is_some())
        })
        .await;
    }

    async fn until(&self, key: &Key, reached: impl Fn(u64) -> bool) {
        let mut followed = self.followed.subscribe();
        let waiting = followed.wait_for(|followed| {
            let newest = followed.get(&key.namespace).or_else(|| followed.get(""));
            reached(newest.copied().flatten().unwrap_or(0))
        });
        // Both a timeout and a closed channel mean: go on with what there is.
        let _ = tokio::time::timeout(SEEN_LIMIT, waiting).await;
    }

    /// Announces a watch of one namespace, or of all of them, so that [`Cache::complete`] waits for it.
    pub fn expect(&self, namespace: Option<&str>) {
        let scope = namespace.unwrap_or_default().to_owned();
        self.followed.send_modify(|followed| {
            followed.entry(scope).or_insert(None);
        });
    }

    /// Follows the API server for ever: the objects of one namespace, or all of them.
    pub async fn follow(self: Arc<Self>, namespace: Option<String>, api: Api<K>, config: watcher::Config) {
        self.expect(namespace.as_deref());
        let scope = namespace.unwrap_or_default();
        let what = api.resource_url().to_owned();
        let mut events = watcher::watcher(api, config).boxed();
        let mut trouble = Trouble::default();
        let mut listed: BTreeMap<Key, Arc<K>> = BTreeMap::new();
        while let Some(event) = events.next().await {
            // Before a list is asked for nothing is heard yet.
            if !matches!(event, Ok(Event::Init) | Err(_)) && trouble.is_over() {
                tracing::info!(%what, "followed again");
            }
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(Key::of(&object), Arc::new(object));
                }
                Ok(Event::InitDone) => self.replace(&scope, &std::mem::take(&mut listed)),
                Ok(Event::Apply(object)) => {
                    let object = Arc::new(object);
                    let before = self.objects.write().insert(Key::of(object.as_ref()), object.clone());
                    self.tell(&Change { before: before.as_deref(), now: Some(&object), gone: false });
                    self.count(&scope, version_of(object.as_ref()));
                }
                Ok(Event::Delete(object)) => {
                    let before = self.objects.write().remove(&Key::of(&object));
                    self.tell(&Change { before: before.as_deref(), now: Some(&object), gone: true });
                    self.count(&scope, version_of(&object));
                }
                Err(error) => {
                    let (pause, is_to_be_told) = trouble.failed(Instant::now());
                    if is_to_be_told {
                        tracing::warn!(%what, %error, hint = trouble::hint(&error), "cannot be followed");
                    } else {
                        tracing::debug!(%what, %error, ?pause, "watch interrupted");
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    fn replace(&self, scope: &str, listed: &BTreeMap<Key, Arc<K>>) {
        let newest = listed.values().map(|object| version_of(object.as_ref())).max().unwrap_or(0);
        let before: BTreeMap<Key, Arc<K>> = {
            let mut objects = self.objects.write();
            let all = std::mem::replace(&mut *objects, listed.clone());
            let (before, others) = all.into_iter().partition(|(key, _)| scope.is_empty() || key.namespace == scope);
            objects.extend::<BTreeMap<_, _>>(others);
            before
        };
        for (key, object) in &before {
            if !listed.contains_key(key) {
                self.tell(&Change { before: Some(object), now: None, gone: true });
            }
        }
        for (key, object) in listed {
            let before = before.get(key).map(AsRef::as_ref);
            self.tell(&Change { before, now: Some(object), gone: false });
        }
        self.count(scope, newest);
    }

    fn tell(&self, change: &Change<'_, K>) {
        for handler in self.handlers.read().iter() {
            handler(change);
        }
    }

    fn count(&self, scope: &str, version: u64) {
        self.followed.send_modify(|followed| {
            let newest = followed.entry(scope.to_owned()).or_default();
            *newest = Some(newest.map_or(version, |newest| newest.max(version)));
        });
    }
}

/// Versions of one server are comparable as numbers; anything else counts as the beginning of time.
fn version_of<K: ResourceExt>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
