//! The node: it tells the API server that it is there, and takes care of the pods that are bound to it.

mod pods;
mod registration;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client};
use skep_kube::controllers::events::Recorder;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::broker::Broker;
use crate::container::Runtime;
use crate::folder::make_private;
use crate::image::{ImageConfig, Images};
use crate::isolation::Isolation;
use crate::network::Network;
use crate::pod::backoff::BackoffRules;
use crate::pod::field::Place;
use crate::pod::{Node as Shared, NodeFolders};
pub(crate) use pods::{Pods, tell_ended};
pub use registration::KubeletAddress;

/// The most that pods get to end when the node itself is stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Everything a node needs to know.
pub struct NodeConfig {
    pub name: String,
    pub client: Client,
    pub isolation: Isolation,
    pub network: Network,
    pub broker: Broker,
    pub images: ImageConfig,
    /// The name server of the pods, if there is one.
    pub dns: Option<IpAddr>,
    /// Where this process reaches the API server, when that is not where its service says.
    pub api_server: Option<SocketAddr>,
    /// Where logs, scratch space and pulled packages are. Containers do not see it.
    pub folder: PathBuf,
    /// A folder in memory, for what must not get onto a disk.
    pub memory: PathBuf,
    /// What else of the machine no container may see, such as the keys of its API server.
    pub hidden: Vec<PathBuf>,
    pub restarts: BackoffRules,
    /// Where the API server reaches the node, if it does.
    pub kubelet: Option<KubeletAddress>,
}

impl std::fmt::Debug for NodeConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("cannot make the folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

/// A node that runs. Dropping it kills its containers.
#[derive(Debug)]
pub struct Node {
    pub(crate) pods: Arc<Pods>,
    registered: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl Node {
    /// Starts a node. It registers itself and works from then on.
    pub fn start(config: NodeConfig) -> Result<Self, NodeError> {
        let folders = NodeFolders {
            memory: config.memory.clone(),
            disk: config.folder.join("scratch"),
            logs: config.folder.join("logs"),
        };
        for folder in [&config.folder, &folders.memory, &folders.disk, &folders.logs] {
            make_private(folder).map_err(|cause| NodeError::Folder { path: folder.clone(), cause })?;
        }
        let mut tasks = JoinSet::new();
        let (recorder, publishing) = Recorder::new(config.client.clone());
        tasks.spawn(publishing);
        let (services, writer) = reflector::store();
        let watched = watcher(Api::<Service>::all(config.client.clone()), watcher::Config::default());
        let follow = reflector(writer, watched.default_backoff());
        tasks.spawn(follow.for_each(|_| std::future::ready(())));
        let allocatable = registration::resources();
        let shared = Arc::new(Shared {
            name: config.name.clone(),
            client: config.client.clone(),
            isolation: config.isolation,
            runtime: Runtime::new(config.isolation),
            images: Images::new(config.images, config.broker, config.isolation),
            recorder,
            services,
            place: Place {
                pod_ip: None,
                host_ip: IpAddr::V4(config.network.node_address()),
                allocatable: allocatable.clone(),
            },
            network: config.network,
            dns: config.dns,
            api_server: config.api_server,
            restarts: config.restarts,
            folders,
            hidden: config.hidden.into_iter().chain([config.folder, config.memory]).collect(),
        });
        let address = shared.place.host_ip;
        let (known, registered) = watch::channel(false);
        let registration = registration::keep(config.client, config.name, address, allocatable, config.kubelet, known);
        tasks.spawn(registration);
        let pods = Arc::new(Pods::new(shared));
        tasks.spawn(pods.clone().follow());
        Ok(Self { pods, registered, tasks })
    }

    /// Waits until the API server knows the node.
    pub async fn registered(&self) {
        // The sender lives as long as the node.
        let _ = self.registered.clone().wait_for(|registered| *registered).await;
    }

    /// Ends all pods, each within its own grace but none later than the node's, and then the node.
    pub async fn stop(mut self) {
        // No pod is started any more, but events are still told.
        self.pods.stop(SHUTDOWN_GRACE).await;
        self.tasks.shutdown().await;
        // It is empty by now; where it is a mount, it goes with the process.
        let _ = fs::remove_dir(self.pods.memory());
    }
}

pub(crate) type Resources = BTreeMap<String, Quantity>;
