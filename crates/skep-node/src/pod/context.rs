//! What the parts of a pod share.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerWish, EphemeralContainer, Pod, PodSpec, Service};
use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use skep_kube::controllers::events::{Note, Recorder};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::backoff::BackoffRules;
use super::drive::Role;
use super::field::Place;
use super::status::PodState;
use super::streams::Streams;
use crate::container::{Container, Runtime};
use crate::image::Images;
use crate::isolation::Isolation;
use crate::network::{Network, PodNetwork};
use crate::volume::Ready;

/// The name under which the node tells events.
pub(super) const SOURCE: &str = "kubelet";

/// What all pods of the node share.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) isolation: Isolation,
    pub(crate) runtime: Runtime,
    pub(crate) network: Network,
    pub(crate) images: Images,
    pub(crate) recorder: Recorder,
    pub(crate) services: Store<Service>,
    pub(crate) place: Place,
    /// The name server of the pods.
    pub(crate) dns: Option<IpAddr>,
    /// Where this process reaches the API server, when that is not where its service says.
    pub(crate) api_server: Option<SocketAddr>,
    pub(crate) restarts: BackoffRules,
    pub(crate) folders: NodeFolders,
    /// Folders of the machine that no container may see.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Where the node keeps what belongs to pods.
#[derive(Clone, Debug)]
pub(crate) struct NodeFolders {
    /// In memory.
    pub(crate) memory: PathBuf,
    pub(crate) disk: PathBuf,
    pub(crate) logs: PathBuf,
}

/// A container that runs, for those who want to look into it.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) container: Arc<Container>,
    pub(crate) streams: Arc<Streams>,
    /// The environment of its program, which further processes in it share.
    pub(crate) env: Arc<Vec<(String, String)>>,
    pub(crate) stdin_once: bool,
    /// None when it uses that of the machine.
    pub(crate) network: Option<Arc<PodNetwork>>,
}

/// What the parts of one pod share.
pub(super) struct Context {
    pub(super) node: Arc<Node>,
    pub(super) pod: watch::Receiver<Arc<Pod>>,
    /// What the API server made of the last report. Taken while one is under way.
    pub(super) answered: Arc<tokio::sync::Mutex<Option<Arc<Pod>>>>,
    pub(super) board: watch::Sender<PodState>,
    pub(super) network: Option<Arc<PodNetwork>>,
    pub(super) volumes: watch::Receiver<BTreeMap<String, Ready>>,
    /// In memory: files that only this pod sees.
    pub(super) files: PathBuf,
    pub(super) logs: PathBuf,
    pub(super) live: Arc<Mutex<HashMap<String, Live>>>,
    /// The order to stop, once there is one.
    pub(super) stop: watch::Receiver<Option<Stop>>,
    /// No main container runs or will run any more.
    pub(super) main_ended: watch::Sender<bool>,
}

/// An order to end all containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) deadline: Instant,
    /// The pod is none of this node's business afterwards.
    pub(super) leave: bool,
    /// It goes on when the node does: its scratch space stays.
    pub(super) goes_on: bool,
}

impl Context {
    pub(super) fn pod(&self) -> Arc<Pod> {
        self.pod.borrow().clone()
    }

    /// What is wanted of a container at the moment.
    pub(super) fn wish(&self, name: &str) -> Option<ContainerWish> {
        wish(self.pod().spec.as_ref()?, name)
    }

    /// Where the pod can be connected to.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.network.as_ref().map(|network| IpAddr::V4(network.place()))
    }

    pub(super) fn place(&self) -> Place {
        let place = self.node.place.clone();
        let host = self.node.network.reach().address(place.host_ip);
        Place { pod_ip: self.address().or(Some(host)), ..place }
    }

    /// Changes what is known about a container.
    pub(super) fn update(&self, name: &str, change: impl FnOnce(&mut super::state::ContainerState)) {
        self.board.send_if_modified(|state| {
            let Some(container) = state.container_mut(name) else { return false };
            let before = container.clone();
            change(container);
            *container != before
        });
    }

    pub(super) fn note(&self, reason: &'static str, message: String) {
        self.node.recorder.record(self.pod().as_ref(), Note::normal(SOURCE, reason, message));
    }

    pub(super) fn warn(&self, reason: &'static str, message: String) {
        self.node.recorder.record(self.pod().as_ref(), Note::warning(SOURCE, reason, message));
    }

    /// The pod as the kubelet writes it in messages.
    pub(super) fn title(&self) -> String {
        let pod = self.pod();
        let namespace = pod.namespace().unwrap_or_default();
        format!("{}_{namespace}({})", pod.name_any(), pod.uid().unwrap_or_default())
    }

    /// Waits for the moment at which a container of this role has to end. Sidecars outlive the others.
    pub(super) async fn stopped(&self, role: Role) -> Stop {
        if role == Role::Sidecar {
            // The sender lives in this context.
            let _ = self.main_ended.subscribe().wait_for(|ended| *ended).await;
            let order = *self.stop.borrow();
            return order.unwrap_or_else(|| Stop { deadline: self.grace(), leave: false, goes_on: false });
        }
        let mut stop = self.stop.clone();
        let order = stop.wait_for(Option::is_some).await.ok().and_then(|order| *order);
        // Whoever could have given it is gone: there is no time left.
        order.unwrap_or_else(|| Stop { deadline: Instant::now(), leave: true, goes_on: false })
    }

    /// Waits for a moment, or for an earlier one when the pod has to stop by then. What is asked to end has `least` time
    /// in any case.
    pub(super) async fn time_is_up(&self, deadline: Instant, least: Duration) {
        let earliest = Instant::now() + least;
        let mut stop = self.stop.clone();
        loop {
            let ordered = stop.borrow_and_update().map_or(deadline, |order| order.deadline.min(deadline));
            tokio::select! {
                () = sleep_until(ordered.max(earliest)) => return,
                // Without anybody to give orders, none are given.
                () = async { if stop.changed().await.is_err() { std::future::pending().await } } => {}
            }
        }
    }

    /// The moment until which a container has time when it is asked to end now.
    pub(super) fn grace(&self) -> Instant {
        let pod = self.pod();
        let seconds = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
        Instant::now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}

/// The container with this name, among all kinds of them.
pub(crate) fn wish(spec: &PodSpec, name: &str) -> Option<ContainerWish> {
    let mut lasting = spec.init_containers.iter().flatten().chain(&spec.containers);
    let passing = || spec.ephemeral_containers.iter().flatten().find(|container| container.name == name);
    lasting.find(|container| container.name == name).cloned().or_else(|| passing().map(as_container))
}

/// A container that somebody has added to look around, with what it has in common with others: all but its target.
pub(super) fn as_container(container: &EphemeralContainer) -> ContainerWish {
    // One is a part of the other in all that both have.
    serde_json::to_value(container).and_then(serde_json::from_value).unwrap_or_default()
}
