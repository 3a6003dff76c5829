//! Packets of clients, and the answers to them.
//!
//! What one client sends from one port is a flow: all of it goes to the same server, by a socket of its own, so that the
//! answers find their way back. A flow ends when nothing has come or gone for a while, or when its server is no longer
//! one.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::service::balance::Balance;

/// The largest packet there is.
const LARGEST: usize = 65_535;
/// How many flows one port has at a time. When there are more, the one that was quiet for the longest time ends.
const MOST_FLOWS: usize = 512;
/// A flow in which nothing happens for so long is over.
const QUIET_LIMIT: Duration = Duration::from_mins(1);

/// Passes packets on until dropped.
pub(super) async fn serve(socket: UdpSocket, balance: Arc<Mutex<Balance>>) {
    let (ended, mut ends) = mpsc::channel(MOST_FLOWS);
    let mut door = Door { socket: Arc::new(socket), balance, flows: HashMap::new(), ended };
    let mut buffer = vec![0; LARGEST];
    loop {
        tokio::select! {
            received = door.socket.recv_from(&mut buffer) => match received {
                Ok((length, client)) => {
                    if let Err(error) = door.take(client, &buffer[..length]).await {
                        tracing::debug!(%error, %client, "packet lost");
                        door.flows.remove(&client);
                    }
                }
                // An earlier answer did not reach its client: that is all that the error says.
                Err(error) => tracing::debug!(%error, "packet not received"),
            },
            Some((client, backend)) = ends.recv() => {
                if door.flows.get(&client).is_some_and(|flow| flow.backend == backend) {
                    door.flows.remove(&client);
                }
            }
        }
    }
}

struct Door {
    socket: Arc<UdpSocket>,
    balance: Arc<Mutex<Balance>>,
    flows: HashMap<SocketAddr, Flow>,
    /// Where flows tell that they are over.
    ended: mpsc::Sender<(SocketAddr, SocketAddr)>,
}

struct Flow {
    backend: SocketAddr,
    socket: Arc<UdpSocket>,
    used: Arc<Mutex<Instant>>,
    answers: JoinHandle<()>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

impl Door {
    async fn take(&mut self, client: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let is_good = |flow: &Flow| self.balance.lock().has(flow.backend);
        if !self.flows.get(&client).is_some_and(is_good) {
            self.flows.remove(&client);
            let Some(flow) = self.open(client).await? else { return Ok(()) };
            if self.flows.len() >= MOST_FLOWS {
                let quietest = self.flows.iter().min_by_key(|(_, flow)| *flow.used.lock()).map(|(client, _)| *client);
                quietest.and_then(|quietest| self.flows.remove(&quietest));
            }
            self.flows.insert(client, flow);
        }
        let Some(flow) = self.flows.get(&client) else { return Ok(()) };
        *flow.used.lock() = Instant::now();
        flow.socket.send(packet).await.map(drop)
    }

    /// A way to the server whose turn it is; none when there is no server.
    async fn open(&self, client: SocketAddr) -> io::Result<Option<Flow>> {
        let Some(backend) = self.balance.lock().pick(client.ip(), Instant::now()).first().copied() else {
            return Ok(None);
        };
        let any = if backend.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Arc::new(UdpSocket::bind(SocketAddr::new(any, 0)).await?);
        socket.connect(backend).await?;
        self.balance.lock().remember(client.ip(), backend, Instant::now());
        let used = Arc::new(Mutex::new(Instant::now()));
        let (back, door, used_too, ended) = (socket.clone(), self.socket.clone(), used.clone(), self.ended.clone());
        let answers = tokio::spawn(async move {
            tokio::select! {
                () = answer(&back, &door, client, &used_too) => {}
                () = quiet(&used_too) => {}
            }
            // The door may be gone, and all of its flows with it.
            let _ = ended.send((client, backend)).await;
        });
        Ok(Some(Flow { backend, socket, used, answers }))
    }
}

/// Passes answers back until the server refuses to give any.
async fn answer(back: &UdpSocket, door: &UdpSocket, client: SocketAddr, used: &Mutex<Instant>) {
    let mut buffer = vec![0; LARGEST];
    while let Ok(length) = back.recv(&mut buffer).await {
        *used.lock() = Instant::now();
        // A client that is gone misses nothing.
        let _ = door.send_to(&buffer[..length], client).await;
    }
}

/// Waits until nothing has happened for too long.
async fn quiet(used: &Mutex<Instant>) {
    loop {
        let deadline = *used.lock() + QUIET_LIMIT;
        if deadline <= Instant::now() {
            return;
        }
        sleep_until(deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers with its own name in front.
    async fn server(name: &'static str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = vec![0; LARGEST];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
                let text = [name.as_bytes(), &buffer[..length]].concat();
                socket.send_to(&text, client).await.unwrap();
            }
        });
        address
    }

    async fn door(balance: &Arc<Mutex<Balance>>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(serve(socket, balance.clone()));
        address
    }

    async fn client(door: SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(door).await.unwrap();
        socket
    }

    /// Packets may be lost, so it asks until it is answered.
    async fn ask(client: &UdpSocket, text: &str) -> String {
        let mut buffer = vec![0; LARGEST];
        loop {
            client.send(text.as_bytes()).await.unwrap();
            let answer = tokio::time::timeout(Duration::from_secs(1), client.recv(&mut buffer)).await;
            if let Ok(Ok(length)) = answer {
                return String::from_utf8(buffer[..length].to_vec()).unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_flow_stays_with_its_server_as_long_as_that_is_one() {
        let (one, other) = (server("one ").await, server("other ").await);
        let balance = Arc::new(Mutex::new(Balance::default()));
        balance.lock().update(vec![one, other], None);
        let door = door(&balance).await;
        let client_one = client(door).await;
        let first = ask(&client_one, "hello").await;
        for _ in 0..4 {
            assert_eq!(ask(&client_one, "hello").await, first);
        }
        assert_ne!(ask(&client(door).await, "hello").await, first, "another flow, another turn");
        let (gone, stays) = if first.starts_with("one") { (one, other) } else { (other, one) };
        balance.lock().update(vec![stays], None);
        assert_ne!(ask(&client_one, "again").await.split(' ').next(), first.split(' ').next(), "{gone} is gone");
    }

    #[tokio::test]
    async fn flows_are_few() {
        let balance = Arc::new(Mutex::new(Balance::default()));
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        balance.lock().update(vec![silent.local_addr().unwrap()], None);
        let (ended, _ends) = mpsc::channel(1);
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let mut door = Door { socket, balance, flows: HashMap::new(), ended };
        let most = u16::try_from(MOST_FLOWS).unwrap();
        let client = |number: u16| SocketAddr::from(([127, 0, 0, 1], 10_000 + number));
        for number in 0..=most {
            door.take(client(number), b"x").await.unwrap();
        }
        assert_eq!(door.flows.len(), MOST_FLOWS);
        assert!(!door.flows.contains_key(&client(0)), "the quietest is gone");
        assert!(door.flows.contains_key(&client(most)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_flow_ends() {
        let used = Mutex::new(Instant::now());
        let begun = Instant::now();
        let once = async {
            tokio::time::sleep(QUIET_LIMIT / 2).await;
            *used.lock() = Instant::now();
        };
        tokio::join!(once, quiet(&used));
        assert_eq!(begun.elapsed(), QUIET_LIMIT / 2 + QUIET_LIMIT);
    }
}
