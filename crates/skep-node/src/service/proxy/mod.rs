//! What is sent to services goes to ready pods.
//!
//! A port is open only while somebody is behind it: a service without endpoints refuses at once.

mod tcp;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
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

/// Keeps the doors of all services as they should be.
pub(crate) struct Proxy {
    broker: Broker,
    node: Ipv4Addr,
    open: BTreeMap<Door, Open>,
    /// Doors that could not be opened: somebody else may have the port.
    closed: BTreeSet<Door>,
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
        Self { broker, node, open: BTreeMap::new(), closed: BTreeSet::new() }
    }

    /// Whether every door is open that should be.
    pub(crate) fn is_complete(&self) -> bool {
        self.closed.is_empty()
    }

    /// Opens and closes doors. A door that cannot be opened is told once, and tried again with every update.
    pub(crate) async fn update(&mut self, directory: &Directory) {
        let wanted = doors(directory, self.node);
        self.open.retain(|door, open| wanted.get(door).is_some_and(|(owner, ..)| *owner == open.owner));
        self.closed.retain(|door| wanted.contains_key(door));
        for (door, (owner, port, affinity)) in wanted {
            if let Some(open) = self.open.get(&door) {
                open.balance.lock().update(port.backends.clone(), affinity);
                continue;
            }
            let balance = Arc::new(Mutex::new(Balance::default()));
            balance.lock().update(port.backends.clone(), affinity);
            match self.open(door, balance.clone()).await {
                Ok(task) => {
                    self.closed.remove(&door);
                    self.open.insert(door, Open { owner, balance, _task: Task(task) });
                }
                Err(error) => {
                    let ((namespace, name), number) = &owner;
                    if self.closed.insert(door) {
                        tracing::warn!(namespace, service = name, port = number, ?door, %error, "service port not open");
                    }
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

/// Every door that should be open. Two services that want the same one: the first by name gets it.
fn doors(directory: &Directory, node: Ipv4Addr) -> Wanted<'_> {
    let mut doors = Wanted::new();
    for (key, entry) in &directory.services {
        for port in entry.ports.iter().filter(|port| !port.backends.is_empty()) {
            let Some(protocol) = Protocol::of(port) else { continue };
            let mut want = |place| {
                let door = Door { protocol, place };
                doors.entry(door).or_insert_with(|| ((key.clone(), port.number), port, entry.affinity));
            };
            if let Some(address) = entry.address {
                want(Place::Inside(SocketAddr::new(address, port.number)));
            }
            if let Some(node_port) = port.on_node {
                want(Place::Inside(SocketAddr::new(IpAddr::V4(node), node_port)));
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
}
