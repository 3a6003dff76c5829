//! Clients that come by TLS, and servers that are reached by it.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoClientAuth;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, SessionStore, TlsIdentity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

use crate::bridge::server::{Setup, limits};
use crate::http::{PATIENCE, Request, Response, call, initialize};
use crate::transparent::server::{Before, Server, reply, with_sessions};

/// An authority that nobody knows but those who are told.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for a name and its key, as PEM.
    pub(crate) fn vouch(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server's side of TLS under that name.
    pub(crate) fn acceptor(&self, name: &str, protocols: &[&[u8]]) -> TlsAcceptor {
        let mut config = self.config(name, Arc::new(NoClientAuth));
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// The same, for clients that have to show who they are.
    pub(crate) fn acceptor_for(&self, name: &str, clients: Arc<dyn ClientCertVerifier>) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.config(name, clients)))
    }

    fn config(&self, name: &str, clients: Arc<dyn ClientCertVerifier>) -> ServerConfig {
        let (certificate, key) = self.vouch(name);
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
        config.unwrap().with_client_cert_verifier(clients).with_single_cert(chain, key).unwrap()
    }

    /// A client's connection to a server that has to be `localhost`.
    async fn connect(&self, address: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap()).unwrap();
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let config = ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    async fn send(&self, address: &str, request: Request) -> Response {
        request.send_on(self.connect(address).await, address).await
    }

    /// What a listener shows to its clients.
    fn identity(&self) -> TlsIdentity {
        let (certificate, key) = self.vouch("localhost");
        TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
    }
}

#[tokio::test]
async fn clients_come_by_tls_and_the_server_is_told_so() {
    let authority = Authority::new();
    let server = Server::start(with_sessions("a")).await;
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let before = Before::unready(Proxy::transparent(transparent).with_tls(authority.identity())).await;
    let first = async {
        loop {
            let response = authority.send(&before.address, Request::post(&initialize("2025-11-25"))).await;
            if response.status != 503 {
                return response;
            }
        }
    };
    let response = tokio::time::timeout(PATIENCE, first).await.unwrap();
    assert_eq!((response.status, response.header("mcp-session-id")), (200, Some("a-0")));
    assert_eq!(server.seen().pop().unwrap().header("x-forwarded-proto"), Some("https"));
    // A page that the proxy itself could have served is at https, too.
    let own = format!("https://{}", before.address);
    let page = |origin: &str| Request::post(&call(1, "x")).in_session("a-0").header("Origin", origin);
    assert_eq!(authority.send(&before.address, page(&own)).await.status, 200);
    let plain = format!("http://{}", before.address);
    assert_eq!(authority.send(&before.address, page(&plain)).await.status, 403);
}

#[tokio::test]
async fn the_address_for_messages_is_one_of_https() {
    let authority = Authority::new();
    let identity = authority.identity();
    let sse = |bridge| Proxy::sse(bridge, Forwarded::default()).with_tls(identity);
    let setup = Setup::new(limits(), SessionStore::memory(), sse).await;
    let event = authority.send(&setup.address, Request::new("GET", "/sse")).await.event().await.unwrap();
    assert!(event.starts_with(&format!("event: endpoint\ndata: https://{}/messages?", setup.address)), "{event}");
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_cut_off_and_others_do_not_wait() {
    let authority = Authority::new();
    let identity = authority.identity();
    let limits = Limits { head: Duration::from_secs(2), ..limits() };
    let setup = Setup::new(limits, SessionStore::memory(), |bridge| Proxy::streamable(bridge).with_tls(identity)).await;
    let mut silent = TcpStream::connect(&setup.address).await.unwrap();
    let mut plain = TcpStream::connect(&setup.address).await.unwrap();
    plain.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(authority.send(&setup.address, Request::new("GET", "/health")).await.status, 200);
    for stream in [&mut silent, &mut plain] {
        let mut told = Vec::new();
        // Whether the connection ends or is reset does not matter, as long as no answer comes.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut told)).await.unwrap();
        assert!(!told.starts_with(b"HTTP"), "{told:?}");
    }
}

#[tokio::test]
async fn trap_21_a_server_at_https_is_reached_by_its_name_whatever_it_speaks() {
    for protocols in [&[b"h2".as_slice(), b"http/1.1"][..], &[b"http/1.1"], &[]] {
        let authority = Authority::new();
        let server = Server::start_with(Some(authority.acceptor("localhost", protocols)), with_sessions("a")).await;
        let port = server.address.rsplit_once(':').unwrap().1;
        let target =
            Target::remote(Dialect::Streamable, &format!("https://localhost:{port}/mcp")).unwrap().allowing_private();
        let target = target.trusting(authority.pem().as_bytes()).unwrap();
        let before = Before::new(target, Forwarded::default()).await;
        let first = before.send(Request::post(&initialize("2025-11-25"))).await;
        assert_eq!((first.status, first.header("mcp-session-id")), (200, Some("a-0")));
        // By its number it would have another name than its certificate.
        let mut later = before.send(Request::post(&call(1, "x")).in_session("a-0")).await;
        assert_eq!(later.json().await["result"]["session"], "a-0");
        server.replace(with_sessions("b"));
        let mut moved = before.send(Request::post(&call(2, "x")).in_session("a-0")).await;
        assert_eq!(moved.json().await["result"]["session"], "b-0");
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_talked_to() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (name, trusted) in [("localhost", &other), ("somebody.else", &authority)] {
        let acceptor = authority.acceptor(name, &[]);
        let server = Server::start_with(Some(acceptor), |_| reply(200, &[], "{}")).await;
        let port = server.address.rsplit_once(':').unwrap().1;
        let target =
            Target::remote(Dialect::Streamable, &format!("https://localhost:{port}/mcp")).unwrap().allowing_private();
        let before = Before::new(target.trusting(trusted.pem().as_bytes()).unwrap(), Forwarded::default()).await;
        assert_eq!(before.send(Request::post(&initialize("2025-11-25"))).await.status, 502, "{name}");
        assert_eq!(server.seen().len(), 0);
    }
    let target = Target::remote(Dialect::Streamable, "https://localhost/mcp").unwrap().allowing_private();
    assert!(target.trusting(b"no certificate").unwrap_err().to_string().contains("certificate"));
}
