//! The way to the nodes: TLS, with a certificate that they know.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::location::Location;
use crate::auth::pki::Identity;

/// A node that cannot be reached by then is not there.
const DIAL_LIMIT: Duration = Duration::from_secs(30);
/// The answer to a request that changes the protocol, or the beginning of a log, comes at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Why there is no way to the nodes.
#[derive(Debug, thiserror::Error)]
pub enum NodeClientError {
    #[error("the certificate of the nodes' authority cannot be read")]
    Authority,
    #[error("the server's certificate for nodes cannot be read")]
    Identity,
    #[error("the server cannot use its certificate for nodes: {0}")]
    Tls(rustls::Error),
}

/// Asks nodes.
#[derive(Clone)]
pub struct NodeClient {
    tls: Arc<ClientConfig>,
    /// Connections that answers still come on.
    connections: Arc<Mutex<JoinSet<()>>>,
}

impl std::fmt::Debug for NodeClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NodeClient").finish_non_exhaustive()
    }
}

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum NodeError {
    #[error("dial tcp {address}: {cause}")]
    Dial { address: String, cause: String },
    #[error("{0}")]
    Tls(io::Error),
    #[error("{0}")]
    Http(String),
}

impl NodeClient {
    /// A client that trusts nodes with a certificate of `authority`, in PEM form, and shows them `identity`.
    pub fn new(authority: &str, identity: &Identity) -> Result<Self, NodeClientError> {
        let authority = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|_| NodeClientError::Authority)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|_| NodeClientError::Authority)?;
        let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| NodeClientError::Identity)?;
        let key = PrivateKeyDer::from_pem_slice(identity.key().as_bytes()).map_err(|_| NodeClientError::Identity)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(NodeClientError::Tls)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(NodeClientError::Tls)?;
        // Only this version can change to another protocol.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(tls), connections: Arc::default() })
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(
        &self,
        location: &Location,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, NodeError> {
        let stream = tokio::time::timeout(DIAL_LIMIT, self.dial(location)).await.map_err(|_| late(location))??;
        let broken = |error: hyper::Error| NodeError::Http(error.to_string());
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        self.keep(async move {
            // It breaks when either side goes, and whoever reads the answer learns of it.
            let _ = connection.with_upgrades().await;
        });
        let answer = tokio::time::timeout(ANSWER_LIMIT, sender.send_request(request)).await;
        answer.map_err(|_| NodeError::Http("the node does not answer".to_owned()))?.map_err(broken)
    }

    async fn dial(&self, location: &Location) -> Result<tokio_rustls::client::TlsStream<TcpStream>, NodeError> {
        let address = location.authority();
        let refused = |error: &io::Error| NodeError::Dial { address: address.clone(), cause: cause(error) };
        let stream = TcpStream::connect(&address).await.map_err(|error| refused(&error))?;
        // A key press should not wait for the next one.
        let _ = stream.set_nodelay(true);
        let name =
            ServerName::try_from(location.host.clone()).map_err(|error| NodeError::Tls(io::Error::other(error)))?;
        TlsConnector::from(self.tls.clone()).connect(name, stream).await.map_err(NodeError::Tls)
    }

    /// Keeps something going until it ends by itself, or the server is gone.
    pub(super) fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut connections = self.connections.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(work);
    }
}

fn late(location: &Location) -> NodeError {
    NodeError::Dial { address: location.authority(), cause: "i/o timeout".to_owned() }
}

/// In the words of the real server, which users search for.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}
