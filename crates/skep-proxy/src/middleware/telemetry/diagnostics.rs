//! A listener that tells what is counted, and nothing else.

use std::io;
use std::net::TcpListener as Socket;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::page::{PATH, Page};
use super::settings::{PrometheusSettings, TelemetryError};
use crate::answer::{self, Answer};
use crate::limits::Limits;
use crate::listener::{self, Coming, Peer, Service};

/// How often a port is looked for. The first one is the one that was asked for; the others are any that are free.
const ATTEMPTS: usize = 3;

/// The listener, until this is dropped.
#[derive(Debug)]
pub(super) struct Diagnostics {
    stop: CancellationToken,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl Diagnostics {
    /// Opens it. A port that is taken is no reason not to serve a server.
    pub(super) fn open(settings: &PrometheusSettings, page: Arc<Page>) -> Result<Self, TelemetryError> {
        let PrometheusSettings { host, port, .. } = settings;
        let listener =
            bind(host, *port).map_err(|cause| TelemetryError::Listener { host: host.clone(), port: *port, cause })?;
        if let Ok(address) = listener.local_addr() {
            tracing::warn!(%address, "metrics are served to everybody who can reach this address");
        }
        let stop = CancellationToken::new();
        let serving = serve(listener, page, stop.clone());
        Ok(Self { stop, serving: Mutex::new(Some(tokio::spawn(serving))) })
    }

    /// Gives the port back.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let serving = self.serving.lock().take();
        if let Some(serving) = serving {
            // It ends by itself, and soon.
            let _ = serving.await;
        }
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.lock().take() {
            serving.abort();
        }
    }
}

fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut bound = open(host, port);
    for _ in 1..ATTEMPTS {
        if let Err(error) = &bound {
            tracing::warn!(%error, host, port, "this port for metrics cannot be used; looking for another one");
            bound = open(host, 0);
        }
    }
    bound
}

fn open(host: &str, port: u16) -> io::Result<TcpListener> {
    let socket = Socket::bind((host, port))?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

async fn serve(listener: TcpListener, page: Arc<Page>, stop: CancellationToken) {
    let limits =
        Limits { connections: 64, idle: Duration::from_mins(1), drain: Duration::from_secs(1), ..Limits::default() };
    listener::serve(listener, None, Arc::new(Only(page)), &limits, stop).await;
}

/// The only thing that there is.
struct Only(Arc<Page>);

impl Service for Only {
    async fn answer(&self, _: Peer, request: Request<Coming>) -> Answer {
        if request.uri().path() == PATH {
            return self.0.answer(request.method());
        }
        answer::text(StatusCode::NOT_FOUND, "404 page not found")
    }
}
