//! A server with a listener, and clients that speak to it byte by byte.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use skep_kube::auth::pki::Pki;
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::server::{Limits, Server};
use skep_kube::store::Store;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Long enough for a slow machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// With the certificate of an administrator.
    admin: TlsConnector,
    stranger: TlsConnector,
    /// A client that needs no connection.
    pub(crate) client: kube::Client,
    _folder: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

pub(crate) async fn serve(limits: Limits) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::open(folder.path()).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let clients = Arc::new(ClientCertificates::new(pki.authority_certificate()).unwrap());
    let identity = pki.server(&["localhost".to_owned()], &[IpAddr::V4(Ipv4Addr::LOCALHOST)]).unwrap();
    let tls = tls::server_config(&identity, &clients).unwrap();
    let tokens = TokenAuthority::new(pki.service_account_key().unwrap());
    let server = Server::with_limits(Store::open(None).unwrap(), tokens, address.to_string(), limits).await.unwrap();
    let admin = pki.admin().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.authority_certificate().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let stranger = config.clone().with_no_client_auth();
    let admin = config
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(admin.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(admin.key().as_bytes()).unwrap(),
        )
        .unwrap();
    let client = server.client();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { server.serve(listener, tls, clients, std::future::pending()).await });
    let [admin, stranger] = [admin, stranger].map(|config| TlsConnector::from(Arc::new(config)));
    Running { address, admin, stranger, client, _folder: folder, _tasks: tasks }
}

impl Running {
    /// A connection of the administrator.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_as(&self.admin).await
    }

    /// A connection of somebody without a certificate.
    pub(crate) async fn connect_stranger(&self) -> TlsStream<TcpStream> {
        self.connect_as(&self.stranger).await
    }

    async fn connect_as(&self, who: &TlsConnector) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        who.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }
}

/// What the server says until it closes the connection.
pub(crate) async fn until_closed(stream: &mut TlsStream<TcpStream>) -> String {
    let mut said = Vec::new();
    // A connection that is cut has no proper end.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut said)).await.expect("the connection is still open");
    String::from_utf8(said).unwrap()
}

pub(crate) const LIVENESS: &[u8] = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
