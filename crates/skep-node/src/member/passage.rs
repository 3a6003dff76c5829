//! The way to an API server that only the machine outside of the namespaces can reach.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use crate::broker::Broker;

/// How many connections it carries at a time; more wait.
const MOST_CONNECTIONS: usize = 1_024;
/// A listener that cannot accept (no more files) tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address on this side that leads to a host outside. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Passage {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Passage {
    /// Opens a way to a host.
    pub async fn open(broker: Broker, host: String, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, task: tokio::spawn(serve(listener, broker, host, port)) })
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, broker: Broker, host: String, port: u16) {
    let host: Arc<str> = host.into();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (broker, host) = (broker.clone(), host.clone());
                connections.spawn(async move {
                    if let Err(error) = carry(stream, &broker, &host, port).await {
                        tracing::debug!(%error, %host, port, "connection to the API server ended");
                    }
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn carry(mut near: TcpStream, broker: &Broker, host: &str, port: u16) -> io::Result<()> {
    let far = broker.dial(host, port).await.map_err(io::Error::other)?;
    far.set_nonblocking(true)?;
    let mut far = TcpStream::from_std(far)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await.map(drop)
}
