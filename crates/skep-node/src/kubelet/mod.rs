//! The node's own API over HTTPS: what an API server asks a node for when somebody wants logs, a process in a container,
//! to be attached to one, or a port of a pod.
//!
//! ```text
//! connection ─> certificate ─> may they? (access) ─> logs
//!                                                 ├> exec, attach ─┬> WebSocket ─┬> conversation ─> container
//!                                                 │                └> SPDY ──────┘
//!                                                 └> portForward ─> WebSocket ─┬> SPDY ─> ports of the pod
//!                                                                └> HTTP ──────┘
//! ```

mod access;
mod attach;
mod conversation;
mod exec;
mod idle;
mod logs;
mod port_forward;
mod refusal;
mod remote;
mod spdy;
mod streams;
mod tunnel;
mod upgrade;
mod web_socket;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use skep_kube::auth::tls::ClientCertificates;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::node::{Node, Pods};

/// A client that does not finish the handshake by then is gone.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// What to wait for when the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the API of a node for as long as it is polled. `clients` judges the certificates that clients show.
pub fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    clients: Arc<ClientCertificates>,
    node: &Node,
) -> impl Future<Output = ()> + Send + use<> {
    let kubelet = Kubelet { pods: node.pods.clone(), visits: Arc::default() };
    accept(listener, TlsAcceptor::from(tls), clients, kubelet)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, clients: Arc<ClientCertificates>, kubelet: Kubelet) {
    let mut connections = JoinSet::new();
    let router = router(kubelet);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (acceptor, clients, router) = (acceptor.clone(), clients.clone(), router.clone());
                connections.spawn(async move { converse(stream, &acceptor, clients, router).await });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, acceptor: &TlsAcceptor, clients: Arc<ClientCertificates>, router: Router) {
    // A key press should not wait for the next one.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await else { return };
    let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
    let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        // A connection can outlive the certificate that it was made with.
        request.extensions_mut().insert(clients.judge(chain.as_deref(), UnixTime::now()));
        router.clone().oneshot(request.map(Body::new))
    });
    // The client went away, or spoke something else: there is nobody to tell.
    let _ = Builder::new(TokioExecutor::new()).serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

/// What all requests share.
#[derive(Clone)]
struct Kubelet {
    pods: Arc<Pods>,
    /// Conversations outlive the requests that they began with, but not the server.
    visits: Arc<Mutex<JoinSet<()>>>,
}

impl Kubelet {
    /// Has a conversation with somebody, until it is over or the server ends.
    fn visit(&self, conversation: impl Future<Output = ()> + Send + 'static) {
        let mut visits = self.visits.lock();
        while visits.try_join_next().is_some() {}
        visits.spawn(conversation);
    }
}

fn router(kubelet: Kubelet) -> Router {
    let ask = axum::middleware::from_fn_with_state(kubelet.clone(), access::check);
    Router::new()
        .route("/containerLogs/{namespace}/{pod}/{container}", get(logs::get))
        .route("/exec/{namespace}/{pod}/{container}", get(remote::exec).post(remote::exec))
        .route("/attach/{namespace}/{pod}/{container}", get(remote::attach).post(remote::attach))
        .route("/portForward/{namespace}/{pod}", get(port_forward::open).post(port_forward::open))
        .layer(ask)
        .with_state(kubelet)
}
