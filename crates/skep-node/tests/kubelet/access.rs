//! Nobody gets into a pod around the API server.

use std::sync::Arc;

use libtest_mimic::Trial;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use skep_kube::auth::pki::Pki;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, Kind};

pub fn trials() -> Vec<Trial> {
    vec![crate::trial(Kind::Ours, "access::a_certificate_is_not_enough", a_certificate_is_not_enough)]
}

async fn a_certificate_is_not_enough(cluster: Arc<Cluster>) {
    assert_eq!(status(&cluster, None).await, 401);
    let developer = cluster.pki().client("developer", Some("developers")).unwrap();
    assert_eq!(status(&cluster, Some(&developer)).await, 403);
    let stranger = tempfile::tempdir().unwrap();
    let stranger = Pki::open(stranger.path()).unwrap().client("root", Some("system:masters")).unwrap();
    assert_eq!(status(&cluster, Some(&stranger)).await, 401);
    let master = cluster.pki().client("root", Some("system:masters")).unwrap();
    assert_eq!(status(&cluster, Some(&master)).await, 404, "may ask, but there is no such pod");
}

/// What somebody with this certificate is answered.
async fn status(cluster: &Cluster, identity: Option<&skep_kube::auth::pki::Identity>) -> u16 {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(cluster.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
            let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(identity.key().as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(cluster.kubelet).await.unwrap();
    let name = ServerName::from(cluster.kubelet.ip());
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    let request = b"GET /containerLogs/default/none/none HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // The node need not say goodbye.
    let _ = stream.read_to_string(&mut answer).await;
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
