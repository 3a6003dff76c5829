//! A certificate that expires stops working, also on a connection that is open already.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use skep_kube::auth::pki::Pki;
use skep_kube::auth::tls::{ClientCertificates, server_config};
use skep_kube::store::Store;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::server_over;

const LIFE: Duration = Duration::from_secs(3);

/// A client with a certificate that is good for a short while.
fn mayfly(pki: &Pki, data_folder: &Path) -> ClientConfig {
    let authority_key = std::fs::read_to_string(data_folder.join("pki/ca.key")).unwrap();
    let authority_key = KeyPair::from_pem(&authority_key).unwrap();
    let issuer = Issuer::from_ca_cert_pem(pki.authority_certificate(), authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "mayfly");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = OffsetDateTime::now_utc() - LIFE;
    params.not_after = OffsetDateTime::now_utc() + LIFE;
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.authority_certificate().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap()
}

/// The status of a GET. The answer is short and comes whole.
async fn get(connection: &mut TlsStream<TcpStream>, path: &str) -> String {
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = tokio::time::timeout(Duration::from_secs(10), connection.read(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer[..length]).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_certificate_expires_during_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::open(folder.path()).unwrap();
    let clients = Arc::new(ClientCertificates::new(pki.authority_certificate()).unwrap());
    let identity = pki.server(&[], &[IpAddr::V4(Ipv4Addr::LOCALHOST)]).unwrap();
    let tls = server_config(&identity, &clients).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = server_over(&Store::open(None).unwrap()).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        server.serve(listener, tls, clients, async { _ = stopped.await }).await;
    });

    let connector = TlsConnector::from(Arc::new(mayfly(&pki, folder.path())));
    let stream = TcpStream::connect(address).await.unwrap();
    let mut connection = connector.connect(ServerName::from(address.ip()), stream).await.unwrap();
    assert_eq!(get(&mut connection, "/livez").await, "200");
    // Certificates count whole seconds.
    tokio::time::sleep(LIFE + Duration::from_secs(1)).await;
    assert_eq!(get(&mut connection, "/livez").await, "401");
    drop(connection);
    stop.send(()).unwrap();
    serving.await.unwrap();
}
