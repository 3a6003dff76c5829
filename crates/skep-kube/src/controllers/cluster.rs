//! What the controllers share: the client, one cache per kind, and the event recorder.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::runtime::watcher;
use kube::{Api, Client};
use skep_control::Cache;

use super::events::Recorder;
use super::objects::{Kind, Objects};

pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    caches: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    watches: Vec<BoxFuture<'static, ()>>,
}

impl Cluster {
    pub(super) fn new(client: Client) -> Self {
        let (recorder, publishing) = Recorder::new(client.clone());
        let watches: Vec<BoxFuture<'static, ()>> = vec![Box::pin(publishing)];
        Self { client, recorder, caches: HashMap::new(), watches }
    }

    /// The objects of a kind. The first caller brings the watch of that kind into being.
    pub(super) fn objects<K: Kind>(&mut self) -> Objects<K> {
        self.objects_with(watcher::Config::default())
    }

    /// As [`Self::objects`]; the configuration of the first caller wins, so a kind is asked for in one way only.
    pub(super) fn objects_with<K: Kind>(&mut self, config: watcher::Config) -> Objects<K> {
        let known = self.caches.get(&TypeId::of::<K>()).and_then(|cache| cache.downcast_ref::<Arc<Cache<K>>>());
        let cache = match known {
            Some(cache) => cache.clone(),
            None => self.watch(config),
        };
        Objects::new(self.client.clone(), cache)
    }

    fn watch<K: Kind>(&mut self, config: watcher::Config) -> Arc<Cache<K>> {
        let cache = Arc::new(Cache::<K>::default());
        self.caches.insert(TypeId::of::<K>(), Box::new(cache.clone()));
        self.watches.push(Box::pin(cache.clone().follow(None, Api::all(self.client.clone()), config)));
        cache
    }

    /// The watches and the event publisher, to be run by whoever owns the tasks.
    pub(super) fn into_watches(self) -> Vec<BoxFuture<'static, ()>> {
        self.watches
    }
}
