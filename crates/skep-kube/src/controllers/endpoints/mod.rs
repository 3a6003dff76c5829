//! Tells every Service with a selector which pods answer for it: as EndpointSlices, and as Endpoints for old clients.

mod addresses;
mod legacy;
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
use slices::{MANAGED_BY, MANAGER, SERVICE_NAME};

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
            let Some(name) = change.now.or(change.before).map(ResourceExt::name_any) else { return };
            if labels(change.before) == labels(change.after()) {
                return;
            }
            for pod in placed.cache().all().into_iter().filter(|pod| pods::node_name(pod) == Some(&name)) {
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
        if addresses::selector(&service).is_none() || service.metadata.deletion_timestamp.is_some() {
            // Somebody else provides the endpoints of a Service without a selector.
            return Ok(Next::Rest);
        }
        let mut pods = self.pods.in_namespace(&key.namespace);
        pods.retain(|pod| addresses::selects(&service, pod));
        let outcome = async {
            self.write_slices(&service, &pods).await?;
            self.write_endpoints(&service, &pods).await
        };
        match outcome.await {
            Err(error) if error.is_namespace_terminating() => Ok(Next::Rest),
            Err(error) => Err(error),
            Ok(()) => Ok(Next::Rest),
        }
    }

    /// Slices go with their owner; Endpoints have none and are removed by name, unless they are not ours.
    async fn forget(&self, key: &Key) -> Result<Next, ControllerError> {
        if let Some(endpoints) = self.endpoints.get(key).filter(|endpoints| legacy::is_ours(endpoints)) {
            self.endpoints.delete(&endpoints, DeleteParams::default()).await?;
        }
        Ok(Next::Rest)
    }

    async fn write_slices(&self, service: &Service, pods: &[Arc<Pod>]) -> Result<(), ControllerError> {
        let mut existing = self.slices.in_namespace(&service.namespace().unwrap_or_default());
        existing.retain(|slice| {
            let labels = slice.labels();
            let of_service = labels.get(SERVICE_NAME) == service.metadata.name.as_ref();
            let live = slice.metadata.deletion_timestamp.is_none();
            of_service && live && labels.get(MANAGED_BY).map(String::as_str) == Some(MANAGER)
        });
        let trigger = trigger_time(service, pods);
        let plan = slices::plan(service, pods, |node| self.nodes.get(&Key::new("", node)), &existing);
        for mut slice in plan.create {
            set_trigger(&mut slice.metadata, trigger);
            self.slices.create(&slice).await?;
        }
        for mut slice in plan.update {
            set_trigger(&mut slice.metadata, trigger);
            self.slices.replace(&slice).await?;
        }
        for slice in plan.delete {
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
