//! Connections of clients, continued to a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::service::balance::Balance;

/// A server that does not accept by then is passed over.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A listener that cannot accept (no more files) tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many connections one port carries at a time.
const MOST_CONNECTIONS: usize = 4_096;

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
    use super::*;

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
        let task = tokio::spawn(serve(door, balance.clone()));
        for _ in 0..4 {
            let mut text = String::new();
            TcpStream::connect(entrance).await.unwrap().read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "hello");
        }
        balance.lock().update(Vec::new(), None);
        let mut rest = Vec::new();
        let refused = TcpStream::connect(entrance).await.unwrap().read_to_end(&mut rest).await;
        assert!(refused.is_err() || rest.is_empty());
        task.abort();
    }
}
