//! Connections to services go to ready pods.
//!
//! A port is open only while somebody is behind it: a service without endpoints refuses at once.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::balance::Balance;
use super::directory::{Directory, Port, ServiceKey};
use crate::broker::Broker;

/// A server that does not accept by then is passed over.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A listener that cannot accept (no more files) tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many connections one port carries at a time.
const MOST_CONNECTIONS: usize = 4_096;

/// Where a port is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    /// On the network of the pods.
    Inside(SocketAddr),
    /// On the loopback of the machine.
    Machine(u16),
}

/// Keeps the doors of all services as they should be.
pub(crate) struct Proxy {
    broker: Broker,
    node: Ipv4Addr,
    open: BTreeMap<Door, Open>,
}

struct Open {
    owner: (ServiceKey, u16),
    balance: Arc<Mutex<Balance>>,
    /// The task of the listener; connections that were accepted go on without it.
    _task: Task,
}

struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Proxy {
    pub(crate) fn new(broker: Broker, node: Ipv4Addr) -> Self {
        Self { broker, node, open: BTreeMap::new() }
    }

    /// Opens and closes doors. A door that cannot be opened is told and tried again with the next change.
    pub(crate) async fn update(&mut self, directory: &Directory) {
        let wanted = doors(directory, self.node);
        self.open.retain(|door, open| wanted.get(door).is_some_and(|(owner, ..)| *owner == open.owner));
        for (door, (owner, port, affinity)) in wanted {
            if let Some(open) = self.open.get(&door) {
                open.balance.lock().update(port.backends.clone(), affinity);
                continue;
            }
            let listener = match door {
                Door::Inside(address) => TcpListener::bind(address).await,
                Door::Machine(port) => self.on_machine(port).await,
            };
            match listener {
                Ok(listener) => {
                    let balance = Arc::new(Mutex::new(Balance::default()));
                    balance.lock().update(port.backends.clone(), affinity);
                    let task = Task(tokio::spawn(serve(listener, balance.clone())));
                    self.open.insert(door, Open { owner, balance, _task: task });
                }
                Err(error) => {
                    let ((namespace, name), number) = &owner;
                    tracing::warn!(namespace, service = name, port = number, ?door, %error, "service port not open");
                }
            }
        }
    }

    async fn on_machine(&self, port: u16) -> io::Result<TcpListener> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = self.broker.listen(address).await.map_err(io::Error::other)?;
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }
}

type Wanted<'a> = BTreeMap<Door, ((ServiceKey, u16), &'a Port, Option<Duration>)>;

/// Every door that should be open. Two services that want the same one: the first by name gets it.
fn doors(directory: &Directory, node: Ipv4Addr) -> Wanted<'_> {
    let mut doors = Wanted::new();
    for (key, entry) in &directory.services {
        let tcp = entry.ports.iter().filter(|port| port.protocol == "TCP" && !port.backends.is_empty());
        for port in tcp {
            let mut want = |door| {
                doors.entry(door).or_insert_with(|| ((key.clone(), port.number), port, entry.affinity));
            };
            if let Some(address) = entry.address {
                want(Door::Inside(SocketAddr::new(address, port.number)));
            }
            if let Some(node_port) = port.on_node {
                want(Door::Inside(SocketAddr::new(IpAddr::V4(node), node_port)));
                want(Door::Machine(node_port));
            }
            if entry.is_balancer {
                want(Door::Machine(port.number));
            }
        }
    }
    doors
}

/// Passes connections on until dropped; connections that are open by then are not cut.
pub(super) async fn serve(listener: TcpListener, balance: Arc<Mutex<Balance>>) {
    let mut connections = Connections(Some(JoinSet::new()));
    loop {
        while connections.len() >= MOST_CONNECTIONS {
            connections.reap().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => connections.spawn(pass(stream, client, balance.clone())),
                Err(error) => {
                    tracing::debug!(%error, "connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            () = connections.reap(), if connections.len() > 0 => {}
        }
    }
}

/// The connections of a door. They outlive it.
struct Connections(Option<JoinSet<()>>);

impl Connections {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, JoinSet::len)
    }

    fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        if let Some(set) = &mut self.0 {
            set.spawn(connection);
        }
    }

    async fn reap(&mut self) {
        if let Some(set) = &mut self.0 {
            set.join_next().await;
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(mut set) = self.0.take() {
            set.detach_all();
        }
    }
}

async fn pass(mut stream: TcpStream, client: SocketAddr, balance: Arc<Mutex<Balance>>) {
    let order = balance.lock().pick(client.ip(), Instant::now());
    for backend in order {
        let Ok(Ok(mut server)) = timeout(CONNECT_LIMIT, TcpStream::connect(backend)).await else { continue };
        balance.lock().remember(client.ip(), backend, Instant::now());
        // Small messages go back and forth; waiting to fill packets would only delay them.
        let _ = (stream.set_nodelay(true), server.set_nodelay(true));
        // Either side may vanish at any time: that is how connections end.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        return;
    }
    // Nobody is there: a reset says so more clearly than an orderly end.
    let _ = stream.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service::directory::tests::directory;

    #[test]
    fn only_what_is_ready_is_open() {
        let service =
            |name: &str, spec: serde_json::Value| json!({"metadata": {"namespace": "n", "name": name}, "spec": spec});
        let services = json!([
            service(
                "a",
                json!({"clusterIP": "10.96.0.1", "type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30001}]})
            ),
            service("b", json!({"clusterIP": "10.96.0.2", "ports": [{"port": 80}]})),
            service("c", json!({"clusterIP": "None", "ports": [{"port": 80}]})),
            service("d", json!({"clusterIP": "10.96.0.4", "ports": [{"port": 53, "protocol": "UDP"}]}))
        ]);
        let slice = |owner: &str, protocol: &str| {
            json!({
            "metadata": {"namespace": "n", "name": owner, "labels": {"kubernetes.io/service-name": owner}},
            "addressType": "IPv4", "ports": [{"port": 8080, "protocol": protocol}],
            "endpoints": [{"addresses": ["10.244.0.9"]}]})
        };
        let slices = json!([slice("a", "TCP"), slice("c", "TCP"), slice("d", "UDP")]);
        let directory = directory(services, slices);
        let open: Vec<Door> = doors(&directory, [10, 244, 0, 1].into()).into_keys().collect();
        let inside = |text: &str| Door::Inside(text.parse().unwrap());
        assert_eq!(open, [inside("10.96.0.1:80"), inside("10.244.0.1:30001"), Door::Machine(80), Door::Machine(30001)]);
    }

    #[tokio::test]
    async fn a_dead_server_is_passed_over() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead_address = dead.local_addr().unwrap();
        drop(dead);
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = server.accept().await.unwrap();
                stream.write_all(b"hello").await.unwrap();
            }
        });
        let balance = Arc::new(Mutex::new(Balance::default()));
        balance.lock().update(vec![dead_address, address], None);
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let entrance = door.local_addr().unwrap();
        let task = Task(tokio::spawn(serve(door, balance.clone())));
        for _ in 0..4 {
            let mut text = String::new();
            TcpStream::connect(entrance).await.unwrap().read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "hello");
        }
        balance.lock().update(Vec::new(), None);
        let mut rest = Vec::new();
        let refused = TcpStream::connect(entrance).await.unwrap().read_to_end(&mut rest).await;
        assert!(refused.is_err() || rest.is_empty());
        drop(task);
    }
}
