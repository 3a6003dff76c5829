//! Empties namespaces that are being deleted, and lets them go.

mod conditions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, ListParams, PartialObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::discovery::{self, Resource};
use super::error::{ControllerError, found};
use super::objects::Objects;
use conditions::Remaining;

const SOURCE: &str = "namespace-controller";
const CONCURRENCY: usize = 3;
/// The finalizer of the specification, not of the metadata.
const FINALIZER: &str = "kubernetes";
const PAGE: u32 = 500;
/// How often a namespace is looked at again while something remains: soon at first, seldom later.
const SOONEST: Duration = Duration::from_millis(250);
const LATEST: Duration = Duration::from_secs(15);

pub(super) struct Controller {
    client: Client,
    namespaces: Objects<Namespace>,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let namespaces = cluster.objects::<Namespace>();
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        namespaces.cache().on_change(move |namespace| {
            if is_emptied(namespace) {
                wake.add(Key::of(namespace));
            }
        });
        Self { client: cluster.client.clone(), namespaces, queue }
    }

    pub(super) async fn run(self) {
        self.namespaces.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(namespace) = self.namespaces.get(&key).filter(|namespace| is_emptied(namespace)) else {
            return Ok(Next::Rest);
        };
        let remaining = match discovery::resources(&self.client).await {
            Ok(resources) => self.empty(&key.name, &resources).await,
            Err(error) => Remaining { discovery: Some(error.server_message()), ..Remaining::default() },
        };
        self.write_conditions(&namespace, &remaining).await?;
        if remaining.is_nothing() {
            self.finalize(&key).await?;
            return Ok(Next::Rest);
        }
        let since = namespace.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        let waited = since.map(|since| Timestamp::now().duration_since(since));
        let waited = waited.and_then(|waited| Duration::try_from(waited).ok()).unwrap_or_default();
        Ok(Next::After((waited / 4).clamp(SOONEST, LATEST)))
    }

    /// Deletes what there is and reports what is still there.
    async fn empty(&self, namespace: &str, resources: &[Resource]) -> Remaining {
        let mut remaining = Remaining::default();
        let (pods, others): (Vec<_>, Vec<_>) = resources
            .iter()
            .filter(|resource| resource.namespaced)
            .partition(|resource| resource.api.group.is_empty() && resource.api.plural == "pods");
        // Pods go first, while the secrets, policies and services they rely on are still there.
        for resource in pods {
            self.empty_of(namespace, resource, &mut remaining).await;
        }
        if remaining.is_nothing() {
            for resource in others {
                self.empty_of(namespace, resource, &mut remaining).await;
            }
        }
        remaining
    }

    async fn empty_of(&self, namespace: &str, resource: &Resource, remaining: &mut Remaining) {
        let api =
            Api::<PartialObjectMeta<DynamicObject>>::namespaced_with(self.client.clone(), namespace, &resource.api);
        let kind = format!("{}.{}", resource.api.plural, resource.api.group);
        match delete_all(&api, resource).await {
            Ok((0, _)) => {}
            Ok((count, finalizers)) => {
                remaining.objects.insert(kind, count);
                for (finalizer, count) in finalizers {
                    *remaining.finalizers.entry(finalizer).or_default() += count;
                }
            }
            // A kind that was removed between discovery and now has no objects.
            Err(error) if error.is_not_found() || error.code() == Some(405) => {}
            Err(error) => remaining.failures.push(error.server_message()),
        }
    }

    async fn write_conditions(&self, namespace: &Namespace, remaining: &Remaining) -> Result<(), ControllerError> {
        let status = namespace.status.clone().unwrap_or_default();
        let known = status.conditions.clone().unwrap_or_default();
        let wanted = conditions::conditions(&known, remaining, Timestamp::now());
        // A namespace that was empty at once does not need to say so.
        if wanted == known || known.is_empty() && remaining.is_nothing() {
            return Ok(());
        }
        let status = NamespaceStatus { conditions: Some(wanted), ..status };
        let updated = Namespace { status: Some(status), ..namespace.clone() };
        found(self.namespaces.replace_status(&updated).await)?;
        Ok(())
    }

    async fn finalize(&self, key: &Key) -> Result<(), ControllerError> {
        // The conditions may just have been written: the live object has the version that counts.
        let Some(mut namespace) = self.namespaces.live(key).await? else { return Ok(()) };
        if !is_emptied(&namespace) {
            return Ok(());
        }
        if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        let api = self.namespaces.api("");
        let answer = api.replace_subresource("finalize", &key.name, &PostParams::default(), &namespace).await;
        found(answer.map_err(Into::into)).map(drop)
    }
}

fn is_emptied(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default();
    namespace.metadata.deletion_timestamp.is_some() && finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// Deletes the objects of one kind. Returns how many remain, and how many of those each finalizer holds.
async fn delete_all(
    api: &Api<PartialObjectMeta<DynamicObject>>,
    resource: &Resource,
) -> Result<(usize, BTreeMap<String, usize>), ControllerError> {
    let found_before = api.list(&ListParams::default().limit(1)).await?;
    if found_before.items.is_empty() {
        return Ok((0, BTreeMap::new()));
    }
    if resource.deletes_collections {
        api.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
    }
    let (mut count, mut finalizers) = (0, BTreeMap::new());
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = api.list(&page).await?;
        for object in &listed.items {
            if !resource.deletes_collections && object.metadata.deletion_timestamp.is_none() {
                let answer = api.delete(&object.name_any(), &DeleteParams::background()).await;
                found(answer.map_err(ControllerError::from))?;
            }
            count += 1;
            for finalizer in object.finalizers() {
                *finalizers.entry(finalizer.clone()).or_default() += 1;
            }
        }
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok((count, finalizers)),
        }
    }
}
