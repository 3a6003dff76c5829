//! Tells every Service with a selector which pods answer for it: as EndpointSlices, and as Endpoints for old clients. The
//! Endpoints that somebody wrote for a Service without one become EndpointSlices, too.

mod addresses;
mod backing;
mod legacy;
mod mirror;
mod slices;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::objects::Objects;
use super::pods;
use slices::{Groups, MANAGED_BY, SERVICE_NAME, Source};

const SOURCE: &str = "endpoint-slice-controller";
const CONCURRENCY: usize = 5;
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const HEADLESS: &str = "service.kubernetes.io/headless";

pub(super) struct Controller {
    services: Objects<Service>,
    pods: Objects<Pod>,
    nodes: Objects<Node>,
    slices: Objects<EndpointSlice>,
    endpoints: Objects<Endpoints>,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let services = cluster.objects::<Service>();
        let pods = cluster.objects::<Pod>();
        let nodes = cluster.objects::<Node>();
        let slices = cluster.objects::<EndpointSlice>();
        let endpoints = cluster.objects::<Endpoints>();
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        services.cache().on_change(move |service| wake.add(Key::of(service)));
        let (wake, candidates) = (queue.clone(), services.clone());
        pods.cache().on_change(move |pod| {
            for service in candidates.in_namespace(&pod.namespace().unwrap_or_default()) {
                if addresses::selects(&service, pod) {
                    wake.add(Key::of(service.as_ref()));
                }
            }
        });
        // Pods count once their node is known.
        let (wake, candidates, placed) = (queue.clone(), services.clone(), pods.clone());
        nodes.cache().on_transition(move |change| {
            let labels = |node: Option<&Node>| node.map(|node| node.labels().clone());
            if labels(change.before().as_deref()) == labels(change.after()) {
                return;
            }
            let name = &change.key.name;
            for pod in placed.cache().all().into_iter().filter(|pod| pods::node_name(pod) == Some(name)) {
                for service in candidates.in_namespace(&pod.namespace().unwrap_or_default()) {
                    if addresses::selects(&service, &pod) {
                        wake.add(Key::of(service.as_ref()));
                    }
                }
            }
        });
        // What somebody else changes or deletes is put right.
        let wake = queue.clone();
        slices.cache().on_change(move |slice| {
            if let Some(service) = slice.labels().get(SERVICE_NAME) {
                wake.add(Key::new(slice.namespace().unwrap_or_default(), service.clone()));
            }
        });
        let wake = queue.clone();
        endpoints.cache().on_change(move |endpoints| wake.add(Key::of(endpoints)));
        Self { services, pods, nodes, slices, endpoints, queue }
    }

    pub(super) async fn run(self) {
        self.services.cache().complete().await;
        self.pods.cache().complete().await;
        self.nodes.cache().complete().await;
        self.slices.cache().complete().await;
        self.endpoints.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(service) = self.services.get(&key) else { return self.forget(&key).await };
        if service.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Rest);
        }
        let outcome = async {
            if addresses::selector(&service).is_none() {
                return self.mirror(&key).await;
            }
            let mut pods = self.pods.in_namespace(&key.namespace);
            pods.retain(|pod| addresses::selects(&service, pod));
            let trigger = trigger_time(&service, &pods);
            let groups = backing::groups(&service, &pods, |node| self.nodes.get(&Key::new("", node)));
            self.write_slices(&backing::source(&service), groups, self.slices_of(&key, backing::MANAGER), trigger)
                .await?;
            self.delete(self.slices_of(&key, mirror::MANAGER)).await?;
            self.write_endpoints(&service, &pods).await
        };
        match outcome.await {
            Err(error) if error.is_namespace_terminating() => Ok(Next::Rest),
            Err(error) => Err(error),
            Ok(()) => Ok(Next::Rest),
        }
    }

    /// Somebody else provides the endpoints of a Service without a selector: as slices, or as Endpoints.
    async fn mirror(&self, key: &Key) -> Result<(), ControllerError> {
        let existing = self.slices_of(key, mirror::MANAGER);
        let written = self.endpoints.get(key).filter(|endpoints| mirror::is_wanted(endpoints));
        let Some(endpoints) = written else { return self.delete(existing).await };
        let trigger = endpoints.annotations().get(TRIGGER_TIME).and_then(|time| time.parse().ok());
        self.write_slices(&mirror::source(&endpoints), mirror::groups(&endpoints), existing, trigger).await
    }

    /// Slices go with their owner, and what was made of Endpoints with the Service; Endpoints have no owner and are removed
    /// by name, unless they are not ours.
    async fn forget(&self, key: &Key) -> Result<Next, ControllerError> {
        self.delete(self.slices_of(key, mirror::MANAGER)).await?;
        if let Some(endpoints) = self.endpoints.get(key).filter(|endpoints| legacy::is_ours(endpoints)) {
            self.endpoints.delete(&endpoints, DeleteParams::default()).await?;
        }
        Ok(Next::Rest)
    }

    /// The slices of a Service that one manager cares for.
    fn slices_of(&self, service: &Key, manager: &str) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.slices.in_namespace(&service.namespace);
        slices.retain(|slice| {
            let label = |name: &str| slice.labels().get(name).map(String::as_str);
            let is_live = slice.metadata.deletion_timestamp.is_none();
            is_live && label(SERVICE_NAME) == Some(&service.name) && label(MANAGED_BY) == Some(manager)
        });
        slices
    }

    async fn write_slices(
        &self,
        source: &Source,
        groups: Groups,
        existing: Vec<Arc<EndpointSlice>>,
        trigger: Option<Timestamp>,
    ) -> Result<(), ControllerError> {
        let plan = slices::plan(source, groups, &existing);
        for mut slice in plan.create {
            set_trigger(&mut slice.metadata, trigger);
            self.slices.create(&slice).await?;
        }
        for mut slice in plan.update {
            set_trigger(&mut slice.metadata, trigger);
            self.slices.replace(&slice).await?;
        }
        self.delete(plan.delete).await
    }

    async fn delete(&self, slices: Vec<Arc<EndpointSlice>>) -> Result<(), ControllerError> {
        for slice in slices {
            self.slices.delete(&slice, DeleteParams::default()).await?;
        }
        Ok(())
    }

    async fn write_endpoints(&self, service: &Service, pods: &[Arc<Pod>]) -> Result<(), ControllerError> {
        let key = Key::of(service);
        let trigger = trigger_time(service, pods);
        match self.endpoints.get(&key) {
            None => {
                let mut wanted = legacy::endpoints(service, pods, None);
                set_trigger(&mut wanted.metadata, trigger);
                self.endpoints.create(&wanted).await?;
            }
            Some(existing) => {
                let mut wanted = legacy::endpoints(service, pods, Some(&existing));
                if wanted != *existing {
                    set_trigger(&mut wanted.metadata, trigger);
                    found(self.endpoints.replace(&wanted).await)?;
                }
            }
        }
        Ok(())
    }
}

/// When the change happened that a new version of the endpoints is about: the newest start or end of readiness.
fn trigger_time(service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
    let ready = pods.iter().filter_map(|pod| pods::condition(pod, "Ready")?.last_transition_time.clone());
    service.metadata.creation_timestamp.clone().into_iter().chain(ready).map(|time| time.0).max()
}

/// A trigger that was told before is not told again.
fn set_trigger(metadata: &mut ObjectMeta, trigger: Option<Timestamp>) {
    let annotations = metadata.annotations.get_or_insert_default();
    let known = annotations.remove(TRIGGER_TIME).and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(trigger) = trigger.filter(|trigger| known.is_none_or(|known| known < *trigger)) {
        annotations.insert(TRIGGER_TIME.to_owned(), trigger.to_string());
    }
    metadata.annotations = metadata.annotations.take().filter(|annotations| !annotations.is_empty());
}
