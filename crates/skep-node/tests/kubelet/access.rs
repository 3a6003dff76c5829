//! Nobody gets into a pod around the API server.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use libtest_mimic::Trial;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use skep_kube::auth::pki::{Identity, Pki};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::cluster::{Cluster, Kind};
use crate::look::STAY;

pub fn trials() -> Vec<Trial> {
    vec![
        crate::trial(Kind::Ours, "access::a_certificate_is_not_enough", a_certificate_is_not_enough),
        crate::trial(Kind::Ours, "access::the_older_protocol_is_spoken", the_older_protocol_is_spoken),
    ]
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

/// A connection of somebody with this certificate to the node itself.
async fn connect(cluster: &Cluster, identity: Option<&Identity>) -> TlsStream<TcpStream> {
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
    connector.connect(name, stream).await.unwrap()
}

/// What somebody with this certificate is answered.
async fn status(cluster: &Cluster, identity: Option<&Identity>) -> u16 {
    let mut stream = connect(cluster, identity).await;
    let request = b"GET /containerLogs/default/none/none HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // The node need not say goodbye.
    let _ = stream.read_to_string(&mut answer).await;
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// What comes through the API server is the newer one.
async fn the_older_protocol_is_spoken(cluster: Arc<Cluster>) {
    const PROTOCOL: &str = "v4.channel.k8s.io";
    cluster.script("older", STAY).await;
    let master = cluster.pki().client("root", Some("system:masters")).unwrap();
    let stream = connect(&cluster, Some(&master)).await;
    let command =
        "command=sh&command=-c&command=read%20word%3B%20echo%20%24word%3B%20echo%20oh%20%3E%262%3B%20exit%203";
    let url = format!("wss://node/exec/default/older/main?{command}&input=1&output=1&error=1");
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", PROTOCOL.parse().unwrap());
    let (mut socket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], PROTOCOL);
    socket.send(Message::Binary(b"\x00hello\n".to_vec().into())).await.unwrap();
    let mut streams = vec![Vec::new(); 4];
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            streams[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    assert_eq!((streams[1].as_slice(), streams[2].as_slice()), (&b"hello\n"[..], &b"oh\n"[..]));
    let verdict: Value = serde_json::from_slice(&streams[3]).unwrap();
    assert_eq!((&verdict["status"], &verdict["reason"]), (&"Failure".into(), &"NonZeroExitCode".into()), "{verdict}");
    assert_eq!(verdict["details"]["causes"][0]["message"], "3", "{verdict}");
}
