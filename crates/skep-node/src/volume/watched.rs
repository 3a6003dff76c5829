//! A single object of the API server, followed.

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What is known of the object.
#[derive(Debug)]
pub(super) enum Seen<K> {
    /// The server has not answered yet.
    Unknown,
    Absent,
    Present(Arc<K>),
}

/// Follows one object until dropped.
#[derive(Debug)]
pub(super) struct Watched<K> {
    seen: watch::Receiver<Seen<K>>,
    task: JoinHandle<()>,
}

impl<K> Watched<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync,
    K: 'static,
{
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let api: Api<K> = Api::namespaced(client, namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let (sender, seen) = watch::channel(Seen::Unknown);
        let task = tokio::spawn(async move {
            let mut events = watcher(api, config).default_backoff().boxed();
            let mut listed = None;
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => listed = None,
                    Ok(Event::InitApply(object)) => listed = Some(object),
                    Ok(Event::InitDone) => {
                        let found = listed.take().map_or(Seen::Absent, |object| Seen::Present(Arc::new(object)));
                        sender.send_replace(found);
                    }
                    Ok(Event::Apply(object)) => drop(sender.send_replace(Seen::Present(Arc::new(object)))),
                    Ok(Event::Delete(_)) => drop(sender.send_replace(Seen::Absent)),
                    Err(error) => tracing::debug!(%error, "watch interrupted"),
                }
            }
        });
        Self { seen, task }
    }

    /// The object as it is now, waiting for the first answer of the server.
    pub(super) async fn get(&mut self) -> Option<Arc<K>> {
        // The sender lives as long as the task, which lives as long as this.
        let seen = self.seen.wait_for(|seen| !matches!(seen, Seen::Unknown)).await.ok()?;
        match &*seen {
            Seen::Present(object) => Some(object.clone()),
            Seen::Absent | Seen::Unknown => None,
        }
    }

    /// Waits for a change after the last [`get`](Self::get).
    pub(super) async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl<K> Drop for Watched<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
