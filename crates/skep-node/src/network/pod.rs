//! The network of one pod.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::TcpStream;

use super::link::{LOOPBACK, Links};
use super::{NetworkError, Shared};
use crate::sys;

/// The name that a pod sees its network under.
const INSIDE: &str = "eth0";

/// A process of this machine accepts a connection by then, or does not mean to.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// The network of one pod. It goes away when this is dropped.
#[derive(Debug)]
pub struct PodNetwork {
    shared: Arc<Shared>,
    address: Ipv4Addr,
    namespace: Option<OwnedFd>,
    cable: Option<u32>,
}

impl PodNetwork {
    /// Makes the network of a pod whose address has been taken for it.
    pub(super) async fn make(shared: Arc<Shared>, address: Ipv4Addr) -> Result<Self, NetworkError> {
        let mut pod = Self { shared, address, namespace: None, cable: None };
        let shared = pod.shared.clone();
        if let Some(bridge) = &shared.bridge {
            let namespace = tokio::task::spawn_blocking(new_namespace).await.map_err(io::Error::other).flatten();
            let namespace = namespace.map_err(NetworkError::kernel("make the network namespace of a pod"))?;
            let name = cable_name(address);
            // The cable of a pod that had this address goes away with its namespace, in the kernel's own time.
            if let Some(old) = bridge.links.find(&name).await.map_err(NetworkError::kernel("look for old cables"))? {
                bridge.links.remove(old).await.map_err(NetworkError::kernel("remove an old cable"))?;
            }
            let cable = bridge.links.add_cable(&name, bridge.index, INSIDE, namespace.as_fd()).await;
            pod.namespace = Some(namespace);
            pod.cable = Some(cable.map_err(NetworkError::kernel("connect a pod to the bridge"))?);
            let (node, prefix) = (shared.addresses.lock().node(), shared.prefix);
            pod.configure(node, prefix).await.map_err(NetworkError::kernel("set up the network of a pod"))?;
        }
        Ok(pod)
    }

    /// The address of the pod.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Where that address can be connected to, and listened on.
    pub fn place(&self) -> Ipv4Addr {
        self.shared.reach.host(self.address)
    }

    /// Its network namespace, where it has one.
    pub fn namespace(&self) -> Option<BorrowedFd<'_>> {
        self.namespace.as_ref().map(OwnedFd::as_fd)
    }

    /// Does something in the network of the pod, on a thread of its own: a socket that is made there stays there.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let Some(namespace) = self.namespace() else {
            return Ok(work());
        };
        let enter_and_work = || {
            move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        std::thread::scope(|scope| scope.spawn(enter_and_work).join())
            .unwrap_or_else(|_| Err(io::Error::other("the work inside the network of a pod panicked")))
    }

    /// Connects to a port of the pod, as its own processes do.
    pub async fn connect(self: Arc<Self>, port: u16) -> io::Result<TcpStream> {
        // Without a network of its own, the loopback of the machine is everybody's, and the pod has an address there.
        let host = if self.namespace.is_some() { Ipv4Addr::LOCALHOST } else { self.place() };
        let dial =
            move || self.run_inside(|| std::net::TcpStream::connect_timeout(&(host, port).into(), DIAL_LIMIT))?;
        let connection = tokio::task::spawn_blocking(dial).await.map_err(io::Error::other)??;
        connection.set_nonblocking(true)?;
        TcpStream::from_std(connection)
    }

    async fn configure(&self, node: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let runtime = tokio::runtime::Handle::current();
        let links = self.run_inside(|| {
            let _entered = runtime.enter();
            Links::connect()
        })??;
        let (loopback, inside) = (links.index(LOOPBACK).await?, links.index(INSIDE).await?);
        links.switch_on(loopback).await?;
        links.add_address(inside, self.address, prefix).await?;
        links.switch_on(inside).await?;
        links.add_default_route(node).await
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        let (shared, address, cable) = (self.shared.clone(), self.address, self.cable.take());
        match (cable, tokio::runtime::Handle::try_current()) {
            (Some(cable), Ok(runtime)) => {
                runtime.spawn(async move {
                    if let Some(bridge) = &shared.bridge
                        && let Err(error) = bridge.links.remove(cable).await
                    {
                        tracing::debug!(%error, %address, "the cable of a pod is gone already");
                    }
                    shared.addresses.lock().release(address);
                });
            }
            _ => shared.addresses.lock().release(address),
        }
    }
}

fn cable_name(address: Ipv4Addr) -> String {
    format!("pod{:08x}", u32::from(address))
}

/// A new network namespace, which exists as long as something refers to it.
fn new_namespace() -> io::Result<OwnedFd> {
    let make = || {
        sys::new_network_namespace()?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    std::thread::spawn(make).join().unwrap_or_else(|_| Err(io::Error::other("cannot start a thread")))
}
