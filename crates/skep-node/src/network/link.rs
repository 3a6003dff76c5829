//! Links, addresses and routes of one network namespace, by netlink.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use futures::TryStreamExt as _;
use ipnet::Ipv4Net;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::packet_route::route::{RouteScope, RouteType};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use tokio::task::JoinHandle;

/// The table in which the kernel keeps what is local.
const LOCAL_TABLE: u32 = 255;

/// Where the local addresses of a namespace are.
pub(super) const LOOPBACK: &str = "lo";

/// A connection to the kernel that acts on the network namespace it was made in.
#[derive(Debug)]
pub(super) struct Links {
    handle: Handle,
    connection: JoinHandle<()>,
}

impl Links {
    /// Connects to the namespace of this thread.
    pub fn connect() -> io::Result<Self> {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        Ok(Self { handle, connection: tokio::spawn(connection) })
    }

    /// The number of a link, if there is one of that name.
    pub async fn find(&self, name: &str) -> io::Result<Option<u32>> {
        let found = self.handle.link().get().match_name(name.to_owned()).execute().try_next().await;
        match found {
            Ok(link) => Ok(link.map(|link| link.header.index)),
            Err(rtnetlink::Error::NetlinkError(message)) if message.raw_code() == -libc::ENODEV => Ok(None),
            Err(error) => Err(cause(error)),
        }
    }

    /// The number of a link that must be there.
    pub async fn index(&self, name: &str) -> io::Result<u32> {
        self.find(name).await?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// Makes a bridge. Its own hardware address keeps it from changing with what is plugged in.
    pub async fn add_bridge(&self, name: &str, hardware: [u8; 6]) -> io::Result<u32> {
        self.handle
            .link()
            .add(LinkBridge::new(name).address(hardware.to_vec()).build())
            .execute()
            .await
            .map_err(cause)?;
        self.index(name).await
    }

    /// Makes a cable from a bridge to a link of another name in another namespace.
    pub async fn add_cable(&self, name: &str, bridge: u32, far: &str, namespace: BorrowedFd<'_>) -> io::Result<u32> {
        let peer = LinkMessageBuilder::<LinkUnspec>::new().name(far).setns_by_fd(namespace.as_raw_fd()).build();
        let cable = LinkVeth::new(name, far)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .controller(bridge)
            .up()
            .build();
        self.handle.link().add(cable).execute().await.map_err(cause)?;
        self.index(name).await
    }

    /// Removes a link; with a cable, both of its ends.
    pub async fn remove(&self, index: u32) -> io::Result<()> {
        self.handle.link().del(index).execute().await.map_err(cause)
    }

    /// Switches a link on.
    pub async fn switch_on(&self, index: u32) -> io::Result<()> {
        let link = LinkMessageBuilder::<LinkUnspec>::new().index(index).up().build();
        self.handle.link().set(link).execute().await.map_err(cause)
    }

    /// Gives a link an address.
    pub async fn add_address(&self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        self.handle.address().add(index, address.into(), prefix).execute().await.map_err(cause)
    }

    /// Makes all addresses of a range local.
    pub async fn add_local_range(&self, index: u32, range: Ipv4Net) -> io::Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(range.network(), range.prefix_len())
            .output_interface(index)
            .table_id(LOCAL_TABLE)
            .scope(RouteScope::Host)
            .kind(RouteType::Local)
            .build();
        self.handle.route().add(route).execute().await.map_err(cause)
    }

    /// Sends everything that is not near through a gateway.
    pub async fn add_default_route(&self, gateway: Ipv4Addr) -> io::Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).build();
        self.handle.route().add(route).execute().await.map_err(cause)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

fn cause(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
