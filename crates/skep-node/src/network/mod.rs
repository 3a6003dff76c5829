//! The network of the pods: a bridge, a network namespace for each pod, and addresses for both pods and services.

mod address;
mod claim;
mod link;
mod pod;
mod reach;

pub use pod::PodNetwork;
pub use reach::Reach;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;
use parking_lot::Mutex;

use crate::isolation::Isolation;
use address::Addresses;
use claim::Claim;
use link::{LOOPBACK, Links};

/// The name of the bridge, in a namespace that is Skep's own.
const BRIDGE: &str = "skep0";

/// The hardware address of the bridge: one of those that everybody may give away.
const BRIDGE_HARDWARE: [u8; 6] = [0x02, 0x73, 0x6b, 0x65, 0x70, 0x00];

/// The addresses that pods and services have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Where pods get their addresses; the first one is that of the node. Without namespaces they are elsewhere: see
    /// [`Reach`].
    pub pod_range: Ipv4Net,
    /// Addresses of services. With namespaces all of them are local to this process.
    pub service_range: Ipv4Net,
}

/// What went wrong with the network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("every address of {0} is in use")]
    Exhausted(Ipv4Net),
    #[error("{address} is not an address for a pod in {range}")]
    OutOfRange {
        /// The address.
        address: Ipv4Addr,
        /// Where it should be.
        range: Ipv4Net,
    },
    #[error("{0} is in use already")]
    InUse(Ipv4Addr),
    #[error("the range {range} is too small for {what}")]
    TooSmall {
        /// The range.
        range: Ipv4Net,
        /// What does not fit.
        what: &'static str,
    },
    #[error("the pod range {pods} and the service range {services} overlap")]
    Overlap {
        /// The range of the pods.
        pods: Ipv4Net,
        /// The range of the services.
        services: Ipv4Net,
    },
    #[error(
        "no addresses are left on the loopback of this machine: others that run without namespaces have them all (hint: \
         stop one of them, or give this one smaller ranges)"
    )]
    NoRoom,
    #[error("cannot {step}: {cause}")]
    Kernel {
        /// What was asked for.
        step: &'static str,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
}

impl NetworkError {
    fn kernel(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Kernel { step, cause }
    }
}

/// The network that connects pods. Clones share it.
#[derive(Debug, Clone)]
pub struct Network {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    addresses: Mutex<Addresses>,
    prefix: u8,
    reach: Reach,
    /// What it has of the loopback, where pods have no namespaces.
    _claim: Option<Claim>,
    /// The bridge that pods are plugged into, where they have namespaces.
    bridge: Option<Bridge>,
}

#[derive(Debug)]
struct Bridge {
    links: Links,
    index: u32,
}

impl Network {
    /// Sets up the network of the pods. With namespaces, this process must be in a network namespace of its own.
    pub async fn start(isolation: Isolation, config: NetworkConfig) -> Result<Self, NetworkError> {
        let NetworkConfig { pod_range: pods, service_range: services } = config;
        if pods.contains(&services) || services.contains(&pods) {
            return Err(NetworkError::Overlap { pods, services });
        }
        let addresses = Addresses::new(pods)?;
        let (bridge, claim) = match isolation {
            Isolation::Namespaces => (Some(Bridge::start(addresses.node(), pods, services).await?), None),
            Isolation::None => (None, Some(Claim::make(&[pods, services])?)),
        };
        let shared = Shared {
            addresses: Mutex::new(addresses),
            prefix: pods.prefix_len(),
            reach: claim.as_ref().map_or(Reach::DIRECT, |claim| claim.reach),
            _claim: claim,
            bridge,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The address of the node, which pods reach it at.
    pub fn node_address(&self) -> Ipv4Addr {
        self.shared.addresses.lock().node()
    }

    /// Where its addresses really are.
    pub fn reach(&self) -> Reach {
        self.shared.reach
    }

    /// The addresses that pods have at the moment.
    pub fn taken(&self) -> Vec<Ipv4Addr> {
        self.shared.addresses.lock().taken()
    }

    /// Makes the network of a pod. An address that was in use comes back only when all others have been.
    pub async fn add_pod(&self) -> Result<PodNetwork, NetworkError> {
        let address = self.shared.addresses.lock().take_next()?;
        PodNetwork::make(self.shared.clone(), address).await
    }

    /// Makes the network of a pod that has this address already, as after a restart.
    pub async fn restore_pod(&self, address: Ipv4Addr) -> Result<PodNetwork, NetworkError> {
        self.shared.addresses.lock().take(address)?;
        PodNetwork::make(self.shared.clone(), address).await
    }
}

impl Bridge {
    async fn start(node: Ipv4Addr, pods: Ipv4Net, services: Ipv4Net) -> Result<Self, NetworkError> {
        let links = connect()?;
        let loopback = loopback(&links).await?;
        let index = links
            .add_bridge(BRIDGE, BRIDGE_HARDWARE)
            .await
            .map_err(NetworkError::kernel("make the bridge of the pods"))?;
        links
            .add_address(index, node, pods.prefix_len())
            .await
            .map_err(NetworkError::kernel("give the bridge its address"))?;
        links
            .add_local_range(loopback, services)
            .await
            .map_err(NetworkError::kernel("make the addresses of services local"))?;
        tokio::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
            .await
            .map_err(NetworkError::kernel("switch on forwarding"))?;
        Ok(Self { links, index })
    }
}

/// Switches on the loopback, which new namespaces have but do not use. [`Network::start`] does so, too.
pub async fn switch_on_loopback(isolation: Isolation) -> Result<(), NetworkError> {
    match isolation {
        Isolation::Namespaces => loopback(&connect()?).await.map(drop),
        Isolation::None => Ok(()),
    }
}

fn connect() -> Result<Links, NetworkError> {
    Links::connect().map_err(NetworkError::kernel("talk to the kernel about the network"))
}

/// The number of the loopback, which is on then.
async fn loopback(links: &Links) -> Result<u32, NetworkError> {
    let index = links.index(LOOPBACK).await.map_err(NetworkError::kernel("find the loopback"))?;
    links.switch_on(index).await.map_err(NetworkError::kernel("switch on the loopback"))?;
    Ok(index)
}
