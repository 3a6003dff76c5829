//! The server on a network: TLS, client certificates, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::Server;
use crate::auth::tls::ClientCertificates;

/// A client that does not finish the handshake by then is gone.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Requests that are under way when the server is asked to stop get this long. Watches never end by themselves.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// What to wait for when the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Server {
    /// Serves connections over TLS until `stop` is ready.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        clients: Arc<ClientCertificates>,
        stop: impl Future<Output = ()>,
    ) {
        let acceptor = TlsAcceptor::from(tls);
        let mut connections = tokio::task::JoinSet::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => {
                    let (server, acceptor, clients) = (self.clone(), acceptor.clone(), clients.clone());
                    connections.spawn(async move { server.converse(stream, &acceptor, &clients).await });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        // What is still open then is cut off, when the set is dropped.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
    }

    async fn converse(&self, stream: TcpStream, acceptor: &TlsAcceptor, clients: &ClientCertificates) {
        // Small answers should not wait for more to come.
        let _ = stream.set_nodelay(true);
        let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await else {
            return;
        };
        let certificate = clients.judge(stream.get_ref().1.peer_certificates(), UnixTime::now());
        let router = self.router();
        let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(certificate.clone());
            router.clone().oneshot(request.map(Body::new))
        });
        // The client went away, or spoke something else: there is nobody to tell.
        let _ = Builder::new(TokioExecutor::new()).serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    }
}
