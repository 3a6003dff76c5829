//! Everything that was ever written.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::task::JoinSet;

/// What somebody wrote: the generation that it claims, and the one that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    pub(super) generation: i64,
    pub(super) content: i64,
}

impl Written {
    /// What a pod of this generation should write.
    pub(super) fn of(generation: i64) -> Self {
        Self { generation, content: generation }
    }
}

/// The versions of the StatefulSet, in their order.
#[derive(Debug)]
pub(super) struct History {
    seen: Arc<Mutex<Vec<Written>>>,
    _watching: JoinSet<()>,
}

impl History {
    /// `read` says what a version tells, if anything.
    pub(super) fn watch(client: Client, namespace: &str, read: fn(&StatefulSet) -> Option<Written>) -> Self {
        let seen: Arc<Mutex<Vec<Written>>> = Arc::default();
        let api: Api<StatefulSet> = Api::namespaced(client, namespace);
        let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        let mut watching = JoinSet::new();
        let sink = seen.clone();
        watching.spawn(async move {
            while let Some(object) = objects.next().await {
                if let Some(written) = object.ok().as_ref().and_then(read) {
                    let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
                    if seen.last() != Some(&written) {
                        seen.push(written);
                    }
                }
            }
        });
        Self { seen, _watching: watching }
    }

    pub(super) fn all(&self) -> Vec<Written> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins anew with what is there now.
    pub(super) fn forget(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let last = seen.pop();
        *seen = last.into_iter().collect();
    }
}
