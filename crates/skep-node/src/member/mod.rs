//! A machine as a member of a cluster: its node, the services that its pods use, and the API by which the cluster looks
//! into it, together.

mod internet;
mod passage;
mod rights;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use skep_kube::auth::pki::Identity;
use skep_kube::auth::tls::{self, ClientCertificates, TlsError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::BackoffRules;
use crate::broker::Broker;
use crate::image::ImageConfig;
use crate::isolation::Isolation;
use crate::kubelet;
use crate::network::Network;
use crate::node::{KubeletAddress, Node, NodeConfig, NodeError, tell_ended};
use crate::service::{ServiceConfig, Services};
use internet::Internet;
pub use internet::Offline;
pub use passage::Passage;
pub use rights::{Right, missing};

/// What a member needs to know.
pub struct MemberConfig {
    /// The name of its node.
    pub name: String,
    pub client: Client,
    pub isolation: Isolation,
    pub network: Network,
    pub broker: Broker,
    pub images: ImageConfig,
    /// Where the name server of the pods listens, if there is to be one.
    pub dns: Option<SocketAddr>,
    /// Where pods find the API server, when that is not where its endpoints say.
    pub api_server: Option<SocketAddr>,
    /// Services that belong to an object of this API group are on the loopback of the machine, as balancers are.
    pub local_group: Option<&'static str>,
    /// Where logs, scratch space and pulled packages are. Containers do not see it.
    pub folder: PathBuf,
    /// A folder in memory, for what must not get onto a disk.
    pub memory: PathBuf,
    /// What else of the machine no container may see, such as keys.
    pub hidden: Vec<PathBuf>,
    pub restarts: BackoffRules,
    pub door: Door,
}

/// Where the cluster looks into the node.
pub struct Door {
    pub listener: TcpListener,
    /// The address at which the API server reaches the listener.
    pub address: IpAddr,
    /// What the node shows.
    pub identity: Identity,
    /// The authority of those who may come, in PEM form.
    pub clients: String,
}

impl std::fmt::Debug for MemberConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MemberConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Door").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Why a machine cannot be a member.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("cannot start the name server of the pods")]
    Names(#[source] io::Error),
    #[error("cannot listen for the API server")]
    Listen(#[source] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A member that works. Dropping it kills its pods.
#[derive(Debug)]
pub struct Member {
    internet: Result<Internet, Offline>,
    _services: Services,
    kubelet: JoinHandle<()>,
    node: Node,
}

impl Member {
    /// Starts all of it. The node registers itself from then on.
    pub async fn start(config: MemberConfig) -> Result<Self, MemberError> {
        tell_ended(&config.client, &config.name, IpAddr::V4(config.network.node_address())).await;
        let internet = Internet::connect(config.isolation, &config.broker).await;
        let services = Services::start(ServiceConfig {
            client: config.client.clone(),
            broker: config.broker.clone(),
            name: config.name.clone(),
            node: config.network.node_address(),
            reach: config.network.reach(),
            dns: config.dns,
            forward: internet.as_ref().ok().and_then(Internet::names),
            // Without namespaces only Skep's own programs have an account, and they are told another address.
            api_server: config.api_server.filter(|_| config.isolation == Isolation::Namespaces),
            local_group: config.local_group,
        });
        let services = services.await.map_err(MemberError::Names)?;
        let Door { listener, address, identity, clients } = config.door;
        let port = listener.local_addr().map_err(MemberError::Listen)?.port();
        let clients = Arc::new(ClientCertificates::new(&clients)?);
        let tls = tls::server_config(&identity, &clients)?;
        let node = Node::start(NodeConfig {
            name: config.name,
            client: config.client,
            isolation: config.isolation,
            network: config.network,
            broker: config.broker,
            images: config.images,
            dns: config.dns.map(|address| address.ip()),
            api_server: config.api_server,
            folder: config.folder,
            memory: config.memory,
            hidden: config.hidden,
            restarts: config.restarts,
            kubelet: Some(KubeletAddress { address, port }),
        })?;
        let kubelet = tokio::spawn(kubelet::serve(listener, tls, clients, &node));
        Ok(Self { internet, _services: services, kubelet, node })
    }

    /// Waits until the API server knows the node.
    pub async fn registered(&self) {
        self.node.registered().await;
    }

    /// Why pods cannot reach the Internet, if they cannot.
    pub fn offline(&self) -> Option<&Offline> {
        self.internet.as_ref().err()
    }

    /// Ends all pods within the node's grace, and then the rest.
    pub async fn stop(self) {
        self.node.stop().await;
        self.kubelet.abort();
    }
}
