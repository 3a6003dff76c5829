//! What the cluster looked like a moment ago: one watched copy of every object of a kind, shared by all controllers.
//!
//! A controller that has written waits until its own write shows up here ([`Cache::until_seen`]). That way its next pass
//! never acts on a state from before its last one, and no bookkeeping of expected changes is needed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::change::Change;
use crate::keeper::{Keeper, Whole};
use crate::key::Key;
use crate::store::Store;
use crate::trouble::Trouble;

/// A write that is not seen by then (a broken watch) does not hold up the controller any longer.
const SEEN_LIMIT: Duration = Duration::from_secs(5);

type Handler<K> = Box<dyn Fn(&Change<'_, K>) + Send + Sync>;

/// All objects of a kind, or of some namespaces: as many as there are calls of [`Cache::follow`]. In which form they are
/// kept is up to `M`.
pub struct Cache<K, M: Keeper<K> = Whole> {
    keeper: M,
    objects: RwLock<Store<M::Kept>>,
    handlers: RwLock<Vec<Handler<K>>>,
    followed: watch::Sender<Followed>,
}

/// How far each watch has come, by namespace; the empty one stands for all of them. A watch whose first list has not
/// arrived has not come anywhere.
type Followed = BTreeMap<String, Option<u64>>;

impl<K, M: Keeper<K>> Default for Cache<K, M> {
    fn default() -> Self {
        Self {
            keeper: M::default(),
            objects: RwLock::default(),
            handlers: RwLock::default(),
            followed: watch::Sender::new(Followed::default()),
        }
    }
}

impl<K, M: Keeper<K>> Debug for Cache<K, M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").field("objects", &self.objects.read().len()).finish_non_exhaustive()
    }
}

impl<K, M> Cache<K, M>
where
    K: ResourceExt + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    M: Keeper<K>,
{
    /// Calls `handler` with every object that appears, changes (before and after) or goes.
    pub fn on_change(&self, handler: impl Fn(&K) + Send + Sync + 'static) {
        self.on_transition(move |change| {
            [change.before().as_deref(), change.now].into_iter().flatten().for_each(&handler);
        });
    }

    /// Calls `handler` with everything that happens.
    pub fn on_transition(&self, handler: impl Fn(&Change<'_, K>) + Send + Sync + 'static) {
        self.handlers.write().push(Box::new(handler));
    }

    /// The object of this name.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.read().get(key).and_then(|kept| self.keeper.recall(kept))
    }

    /// Every object, sorted by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.objects.read().values().filter_map(|kept| self.keeper.recall(kept)).collect()
    }

    /// The names of all objects, sorted.
    pub fn keys(&self) -> Vec<Key> {
        self.objects.read().keys()
    }

    /// Every object of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.select(namespace, |_| true)
    }

    /// The objects of a namespace that are wanted, judged by what is kept of them, sorted by name.
    pub fn select(&self, namespace: &str, wanted: impl Fn(&M::Kept) -> bool) -> Vec<Arc<K>> {
        let objects = self.objects.read();
        let wanted = objects.in_namespace(namespace).filter(|kept| wanted(kept));
        wanted.filter_map(|kept| self.keeper.recall(kept)).collect()
    }

    /// Waits until the first complete list of every watch has arrived.
    pub async fn complete(&self) {
        let complete = |followed: &Followed| !followed.is_empty() && followed.values().all(Option::is_some);
        // The sender lives in `self`, so this cannot fail while we wait.
        let _ = self.followed.subscribe().wait_for(complete).await;
    }

    /// Waits until what was written is here in at least this version, or has already gone again.
    pub async fn until_seen(&self, written: &impl ResourceExt) {
        let wanted = version_of(written);
        self.until(&Key::of(written), |newest| newest >= wanted).await;
    }

    /// Waits until the object is gone, replaced or on its way out.
    pub async fn until_deleting(&self, object: &K) {
        let key = Key::of(object);
        self.until(&key, |_| {
            self.get(&key).is_none_or(|seen| seen.uid() != object.uid() || seen.meta().deletion_timestamp.is_some())
        })
        .await;
    }

    /// Announces that there will be no watch: nothing will ever be here, and nobody has to wait for it.
    pub fn forgo(&self) {
        self.followed.send_modify(|followed| {
            followed.entry(String::new()).or_insert(Some(0));
        });
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
        let mut trouble = Trouble::new(api.resource_url());
        let mut events = watcher::watcher(api, config).boxed();
        let (mut listed, mut newest) = (Store::default(), 0);
        while let Some(event) = events.next().await {
            // Before a list is asked for nothing is heard yet.
            if !matches!(event, Ok(Event::Init) | Err(_)) {
                trouble.ends();
            }
            match event {
                Ok(Event::Init) => (listed, newest) = (Store::default(), 0),
                Ok(Event::InitApply(object)) => {
                    newest = newest.max(version_of(&object));
                    listed.insert(&Key::of(&object), self.keeper.keep(&Arc::new(object)));
                }
                Ok(Event::InitDone) => {
                    self.replace(&scope, std::mem::take(&mut listed));
                    self.count(&scope, newest);
                }
                Ok(Event::Apply(object)) => {
                    let (key, object) = (Key::of(&object), Arc::new(object));
                    let kept = self.keeper.keep(&object);
                    let before = self.objects.write().insert(&key, kept);
                    self.tell(&Change::new(&key, &|| self.recall(before.as_ref()), Some(&object)));
                    self.count(&scope, version_of(object.as_ref()));
                }
                Ok(Event::Delete(object)) => {
                    let key = Key::of(&object);
                    let before = self.objects.write().remove(&key);
                    self.tell(&Change::new(&key, &|| self.recall(before.as_ref()), Some(&object)).gone());
                    self.count(&scope, version_of(&object));
                }
                Err(error) => trouble.pause(&error).await,
            }
        }
    }

    fn replace(&self, scope: &str, listed: Store<M::Kept>) {
        let keys = listed.keys();
        let before = self.objects.write().replace(scope, listed);
        for key in before.keys() {
            if self.objects.read().get(&key).is_none() {
                self.tell(&Change::new(&key, &|| self.recall(before.get(&key)), None).gone());
            }
        }
        for key in keys {
            let now = self.get(&key);
            self.tell(&Change::new(&key, &|| self.recall(before.get(&key)), now.as_deref()));
        }
    }

    fn recall(&self, kept: Option<&M::Kept>) -> Option<Arc<K>> {
        kept.and_then(|kept| self.keeper.recall(kept))
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
