//! One metadata watch per kind, started and stopped as kinds come and go.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::Shared;
use super::graph::Node;
use crate::controllers::discovery::{self, Resource};

/// New kinds are announced by their definitions; this is for whatever comes in another way.
const REDISCOVERY: Duration = Duration::from_mins(5);
const RETRY: Duration = Duration::from_secs(2);
/// A definition is established a moment after it was written.
const SETTLING: Duration = Duration::from_millis(500);
/// A kind that cannot be watched does not hold up the others any longer.
const FIRST_LISTS: Duration = Duration::from_secs(30);

pub(super) struct Monitors {
    client: Client,
    shared: Arc<Shared>,
    running: HashMap<Resource, tokio::task::AbortHandle>,
    tasks: JoinSet<()>,
    kinds_changed: Arc<Notify>,
    /// How many watches have not seen their first complete list yet.
    incomplete: watch::Sender<usize>,
}

impl Monitors {
    pub(super) fn new(client: Client, shared: Arc<Shared>) -> Self {
        Self {
            client,
            shared,
            running: HashMap::new(),
            tasks: JoinSet::new(),
            kinds_changed: Arc::default(),
            incomplete: watch::Sender::new(0),
        }
    }

    /// Starts the watches and waits until each has seen all there is.
    pub(super) async fn start(&mut self) {
        while !self.discover().await {
            tokio::time::sleep(RETRY).await;
        }
        let mut incomplete = self.incomplete.subscribe();
        let complete = incomplete.wait_for(|count| *count == 0);
        if tokio::time::timeout(FIRST_LISTS, complete).await.is_err() {
            tracing::warn!("some kinds cannot be watched; garbage collection starts without them");
        }
    }

    /// Keeps the set of watches up to date for ever.
    pub(super) async fn follow(&mut self) {
        loop {
            let wait = tokio::time::timeout(REDISCOVERY, self.kinds_changed.notified()).await;
            if wait.is_ok() {
                tokio::time::sleep(SETTLING).await;
            }
            if !self.discover().await {
                tokio::time::sleep(RETRY).await;
                self.kinds_changed.notify_one();
            }
        }
    }

    async fn discover(&mut self) -> bool {
        let resources = match discovery::resources(&self.client).await {
            Ok(resources) => resources,
            Err(error) => {
                tracing::warn!(%error, "the kinds of the server are not known");
                return false;
            }
        };
        let wanted: HashSet<Resource> =
            resources.into_iter().filter(|resource| resource.watchable && !discovery::is_event(resource)).collect();
        self.running.retain(|resource, task| {
            let stays = wanted.contains(resource);
            if !stays {
                task.abort();
            }
            stays
        });
        *self.shared.resources.lock() = wanted
            .iter()
            .map(|resource| ((resource.api.group.clone(), resource.api.kind.clone()), resource.clone()))
            .collect();
        for resource in wanted {
            if !self.running.contains_key(&resource) {
                self.incomplete.send_modify(|count| *count += 1);
                let monitor = Monitor {
                    resource: resource.clone(),
                    shared: self.shared.clone(),
                    kinds_changed: self.kinds_changed.clone(),
                    seen: HashSet::new(),
                    incomplete: Some(Incomplete(self.incomplete.clone())),
                };
                let task = self.tasks.spawn(monitor.run(self.client.clone()));
                self.running.insert(resource, task);
            }
        }
        true
    }
}

/// Counts down when the first list is complete, or when the watch ends without one.
struct Incomplete(watch::Sender<usize>);

impl Drop for Incomplete {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

struct Monitor {
    resource: Resource,
    shared: Arc<Shared>,
    kinds_changed: Arc<Notify>,
    seen: HashSet<String>,
    incomplete: Option<Incomplete>,
}

impl Monitor {
    async fn run(mut self, client: Client) {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &self.resource.api);
        let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        let defines_kinds = self.resource.api.kind == "CustomResourceDefinition";
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => listed.extend(self.observe(object.metadata)),
                Ok(Event::InitDone) => {
                    let gone: Vec<_> = self.seen.difference(&listed).cloned().collect();
                    for uid in &gone {
                        self.forget(uid);
                    }
                    self.seen = std::mem::take(&mut listed);
                    self.incomplete = None;
                }
                Ok(Event::Apply(object)) => {
                    let uid = self.observe(object.metadata);
                    self.seen.extend(uid);
                    if defines_kinds {
                        self.kinds_changed.notify_one();
                    }
                }
                Ok(Event::Delete(object)) => {
                    let uid = object.metadata.uid.unwrap_or_default();
                    self.seen.remove(&uid);
                    self.forget(&uid);
                    if defines_kinds {
                        self.kinds_changed.notify_one();
                    }
                }
                Err(error) => tracing::debug!(%error, kind = self.resource.api.kind, "watch interrupted"),
            }
        }
    }

    fn observe(&self, metadata: kube::core::ObjectMeta) -> Option<String> {
        let uid = metadata.uid.clone()?;
        let node = Node::new(&self.resource.api, self.resource.namespaced, metadata);
        let affected = self.shared.graph.lock().observe(node);
        for other in affected {
            self.shared.queue.add(other);
        }
        Some(uid)
    }

    fn forget(&self, uid: &str) {
        let affected = self.shared.graph.lock().forget(uid);
        for uid in affected {
            self.shared.queue.add(uid);
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let mut graph = self.shared.graph.lock();
        for uid in &self.seen {
            graph.lose_sight(uid);
        }
    }
}
