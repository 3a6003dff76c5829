//! What is sent to services goes to ready pods.
//!
//! A port is open only while somebody is behind it: a service without endpoints refuses at once.

mod tcp;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

use super::balance::Balance;
use super::directory::{Directory, Port, ServiceKey};
use crate::broker::Broker;

/// A port that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Door {
    protocol: Protocol,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// On the network of the pods.
    Inside(SocketAddr),
    /// On the loopback of the machine.
    Machine(u16),
}

impl Protocol {
    /// None for what is not served: SCTP.
    fn of(port: &Port) -> Option<Self> {
        match port.protocol.as_str() {
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            _ => None,
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Inside(address) => write!(formatter, "{address}"),
            Place::Machine(port) => write!(formatter, "127.0.0.1:{port}"),
        }?;
        match self.protocol {
            Protocol::Tcp => Ok(()),
            Protocol::Udp => formatter.write_str(" (UDP)"),
        }
    }
}

/// Keeps the doors of all services as they should be.
pub(crate) struct Proxy {
    broker: Broker,
    node: Ipv4Addr,
    open: BTreeMap<Door, Open>,
    /// Doors that could not be opened, each with who wants it: somebody else may have the port.
    closed: BTreeMap<Door, ServiceKey>,
    /// Doors on the machine that nobody is behind yet, and that could be opened.
    free: BTreeSet<Door>,
}

struct Open {
    owner: (ServiceKey, u16),
    balance: Arc<Mutex<Balance>>,
    /// What serves it; connections that were accepted go on without it.
    _task: Task,
}

struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Proxy {
    pub(crate) fn new(broker: Broker, node: Ipv4Addr) -> Self {
        Self { broker, node, open: BTreeMap::new(), closed: BTreeMap::new(), free: BTreeSet::new() }
    }

    /// Whether every door is open that should be.
    pub(crate) fn is_complete(&self) -> bool {
        self.closed.is_empty()
    }

    /// The ports of the machine that could not be opened, of each service.
    pub(crate) fn closed_ports(&self) -> BTreeMap<ServiceKey, BTreeSet<u16>> {
        let mut ports: BTreeMap<ServiceKey, BTreeSet<u16>> = BTreeMap::new();
        for (door, owner) in &self.closed {
            if let Place::Machine(port) = door.place {
                ports.entry(owner.clone()).or_default().insert(port);
            }
        }
        ports
    }

    /// Opens and closes doors. A door on the machine is tried as soon as it is wanted, even if nobody is behind it, so that
    /// it is known early that it cannot be had. A door that cannot be opened is told once, and tried again with every update.
    pub(crate) async fn update(&mut self, directory: &Directory) {
        let wanted = doors(directory, self.node);
        // A door that nobody is behind any more could be opened again.
        self.free.extend(self.open.keys());
        self.free.retain(|door| wanted.get(door).is_some_and(|(_, port, _)| port.backends.is_empty()));
        self.open.retain(|door, open| {
            wanted.get(door).is_some_and(|(owner, port, _)| *owner == open.owner && !port.backends.is_empty())
        });
        self.closed.retain(|door, _| wanted.contains_key(door));
        for (door, (owner, port, affinity)) in wanted {
            let has_backends = !port.backends.is_empty();
            if !has_backends && self.free.contains(&door) {
                continue;
            }
            if let Some(open) = self.open.get(&door) {
                open.balance.lock().update(port.backends.clone(), affinity);
                continue;
            }
            let balance = Arc::new(Mutex::new(Balance::default()));
            balance.lock().update(port.backends.clone(), affinity);
            match self.open(door, balance.clone()).await {
                Ok(task) => {
                    self.closed.remove(&door);
                    let open = Open { owner, balance, _task: Task(task) };
                    if has_backends {
                        self.open.insert(door, open);
                    } else {
                        self.free.insert(door);
                    }
                }
                Err(error) => {
                    let ((namespace, name), number) = owner;
                    if !self.closed.contains_key(&door) {
                        tracing::warn!(
                            "port {number} of the service {namespace}/{name} is not open at {door}: {error}"
                        );
                    }
                    self.closed.insert(door, (namespace, name));
                }
            }
        }
    }

    async fn open(&self, door: Door, balance: Arc<Mutex<Balance>>) -> io::Result<JoinHandle<()>> {
        let on_machine = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(match (door.protocol, door.place) {
            (Protocol::Tcp, Place::Inside(address)) => {
                tokio::spawn(tcp::serve(TcpListener::bind(address).await?, balance))
            }
            (Protocol::Tcp, Place::Machine(port)) => {
                let listener = self.broker.listen(on_machine(port)).await.map_err(io::Error::other)?;
                listener.set_nonblocking(true)?;
                tokio::spawn(tcp::serve(TcpListener::from_std(listener)?, balance))
            }
            (Protocol::Udp, Place::Inside(address)) => {
                tokio::spawn(udp::serve(UdpSocket::bind(address).await?, balance))
            }
            (Protocol::Udp, Place::Machine(port)) => {
                let socket = self.broker.bind(on_machine(port)).await.map_err(io::Error::other)?;
                socket.set_nonblocking(true)?;
                tokio::spawn(udp::serve(UdpSocket::from_std(socket)?, balance))
            }
        })
    }
}

type Wanted<'a> = BTreeMap<Door, ((ServiceKey, u16), &'a Port, Option<Duration>)>;

/// Every door that should be open, and those on the machine that will be as soon as somebody is behind them. Two services that want the same one: the first by name
/// gets it, and one with somebody behind it before one without.
fn doors(directory: &Directory, node: Ipv4Addr) -> Wanted<'_> {
    let mut doors = Wanted::new();
    for (key, entry) in &directory.services {
        for port in &entry.ports {
            let Some(protocol) = Protocol::of(port) else { continue };
            let has_backends = !port.backends.is_empty();
            let mut want = |place| {
                let wish = || ((key.clone(), port.number), port, entry.affinity);
                let known = doors.entry(Door { protocol, place }).or_insert_with(wish);
                if known.1.backends.is_empty() && has_backends {
                    *known = wish();
                }
            };
            if let Some(address) = entry.address.filter(|_| has_backends) {
                want(Place::Inside(SocketAddr::new(address, port.number)));
            }
            if let Some(node_port) = port.on_node {
                if has_backends {
                    want(Place::Inside(SocketAddr::new(IpAddr::V4(node), node_port)));
                }
                want(Place::Machine(node_port));
            }
            if let Some(local) = port.on_machine {
                want(Place::Machine(local));
            }
        }
    }
    doors
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;
    use crate::service::directory::tests::directory;

    #[test]
    fn only_what_is_ready_is_open() {
        let service = |name: &str, spec: serde_json::Value| {
            let annotations = json!({"skep.dev/local-ports": if name == "a" { "80:8080" } else { "" }});
            json!({"metadata": {"namespace": "n", "name": name, "annotations": annotations}, "spec": spec})
        };
        let services = json!([
            service(
                "a",
                json!({"clusterIP": "10.96.0.1", "type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30001}]})
            ),
            service("b", json!({"clusterIP": "10.96.0.2", "ports": [{"port": 80}]})),
            service("c", json!({"clusterIP": "None", "ports": [{"port": 80}]})),
            service("d", json!({"clusterIP": "10.96.0.4", "ports": [{"port": 53, "protocol": "UDP"}]})),
            service("e", json!({"clusterIP": "10.96.0.5", "ports": [{"port": 99, "protocol": "SCTP"}]}))
        ]);
        let slice = |owner: &str, protocol: &str| {
            json!({
            "metadata": {"namespace": "n", "name": owner, "labels": {"kubernetes.io/service-name": owner}},
            "addressType": "IPv4", "ports": [{"port": 8080, "protocol": protocol}],
            "endpoints": [{"addresses": ["10.244.0.9"]}]})
        };
        let slices = json!([slice("a", "TCP"), slice("c", "TCP"), slice("d", "UDP"), slice("e", "SCTP")]);
        let directory = directory(services, slices);
        let open: Vec<Door> = doors(&directory, [10, 244, 0, 1].into()).into_keys().collect();
        let inside = |text: &str| Place::Inside(text.parse().unwrap());
        let tcp = [inside("10.96.0.1:80"), inside("10.244.0.1:30001"), Place::Machine(8080), Place::Machine(30001)];
        let tcp = tcp.map(|place| Door { protocol: Protocol::Tcp, place });
        let udp = Door { protocol: Protocol::Udp, place: inside("10.96.0.4:53") };
        assert_eq!(open, [&tcp[..], &[udp]].concat());
    }

    #[tokio::test]
    async fn a_port_of_somebody_else_is_known_before_anybody_is_ready() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let service = json!({"metadata": {"namespace": "n", "name": "a",
                "annotations": {"skep.dev/local-ports": format!("80:{port}")}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
        let directory = directory(json!([service]), json!([]));
        let mut proxy = Proxy::new(Broker::connect().unwrap(), [10, 244, 0, 1].into());
        proxy.update(&directory).await;
        let closed = BTreeMap::from([(("n".to_owned(), "a".to_owned()), BTreeSet::from([port]))]);
        assert_eq!((proxy.closed_ports(), proxy.is_complete()), (closed, false));
        drop(other);
        proxy.update(&directory).await;
        assert_eq!((proxy.closed_ports(), proxy.is_complete()), (BTreeMap::new(), true));
        // The trial is over as soon as its task has ended.
        let is_free = || std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        let over = Instant::now() + Duration::from_secs(30);
        while !is_free() {
            assert!(Instant::now() < over, "nobody is behind it, so it is not open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
