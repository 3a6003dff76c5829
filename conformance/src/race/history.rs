//! Everything that was ever written.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::task::JoinSet;

use super::objects::GENERATION;

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
    pub(super) fn watch(client: Client, namespace: &str) -> Self {
        let seen: Arc<Mutex<Vec<Written>>> = Arc::default();
        let api: Api<StatefulSet> = Api::namespaced(client, namespace);
        let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        let mut watching = JoinSet::new();
        let sink = seen.clone();
        watching.spawn(async move {
            while let Some(object) = objects.next().await {
                if let Some(written) = object.ok().as_ref().and_then(written) {
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

fn written(object: &StatefulSet) -> Option<Written> {
    let template = &object.spec.as_ref()?.template;
    let generation = template.metadata.as_ref()?.annotations.as_ref()?.get(GENERATION)?.parse().ok()?;
    let image = template.spec.as_ref()?.containers.first()?.image.as_deref()?;
    Some(Written { generation, content: image.strip_prefix("content-")?.parse().ok()? })
}
