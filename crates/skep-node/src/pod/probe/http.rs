//! An HTTP probe: any answer from 200 to 399 is a yes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::{UnknownPort, port_of, tcp};

/// How much of a body is read before the connection is closed.
const LONGEST_BODY: usize = 10 * 1024;

/// What is asked, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    tls: bool,
    host: String,
    port: u16,
    path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn new(action: &HTTPGetAction, container: &Container, address: IpAddr) -> Result<Self, UnknownPort> {
        let path = action.path.as_deref().unwrap_or("/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let headers = action.http_headers.iter().flatten();
        Ok(Self {
            tls: action.scheme.as_deref() == Some("HTTPS"),
            host: action.host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| address.to_string()),
            port: port_of(&action.port, container)?,
            path: format!("{slash}{path}"),
            headers: headers.map(|header| (header.name.clone(), header.value.clone())).collect(),
        })
    }

    fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

pub(crate) async fn ask(request: &Request, timeout: Duration) -> Result<(), String> {
    let failed = |error: String| format!("Get {:?}: {error}", request.url());
    let code = match tokio::time::timeout(timeout, send(request)).await {
        Ok(answer) => answer.map_err(failed)?,
        Err(_) => return Err(failed(format!("no answer within {} s", timeout.as_secs()))),
    };
    if (200..400).contains(&code) { Ok(()) } else { Err(format!("HTTP probe failed with statuscode: {code}")) }
}

async fn send(request: &Request) -> Result<u16, String> {
    let stream = tcp::connect(&request.host, request.port).await?;
    if !request.tls {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(request.host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(tls()?).connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, request).await
}

async fn exchange(stream: impl AsyncRead + AsyncWrite + Unpin + Send, request: &Request) -> Result<u16, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    let mut builder = http::Request::get(&request.path).header("connection", "close");
    let given = |name: &str| request.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    for (name, value) in [("user-agent", "kube-probe/1.36"), ("accept", "*/*")] {
        if !given(name) {
            builder = builder.header(name, value);
        }
    }
    if !given("host") {
        builder = builder.header("host", format!("{}:{}", request.host, request.port));
    }
    let message = builder.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
    let answer = async {
        let mut answer = sender.send_request(message).await.map_err(told)?;
        let mut read = 0;
        while let Some(Ok(frame)) = answer.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > LONGEST_BODY {
                break;
            }
        }
        Ok(answer.status().as_u16())
    };
    tokio::pin!(answer);
    // The connection only makes progress while it is polled; a probe has no task to leave behind.
    tokio::select! {
        answer = &mut answer => answer,
        ended = connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(error.to_string()),
        }
    }
}

fn tls() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)));
    Ok(Arc::new(config.with_no_client_auth()))
}

/// A probe asks whether a server answers, not who it is; kubelets do not check certificates here either.
#[derive(Debug)]
struct Unchecked(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request with `answer` and gives back what was asked.
    async fn once(answer: &'static str) -> (Result<(), String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&asked[..read]).into_owned()
        });
        let action = json!({"path": "health", "port": port, "httpHeaders": [{"name": "X-Probe", "value": "yes"}]});
        let container = Container { name: "c".into(), ..Container::default() };
        let action = serde_json::from_value(action).unwrap();
        let request = Request::new(&action, &container, [127, 0, 0, 1].into()).unwrap();
        let answer = ask(&request, Duration::from_secs(2)).await;
        (answer, server.await.unwrap())
    }

    #[tokio::test]
    async fn codes_decide() {
        let (answer, asked) = once("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(answer, Ok(()));
        assert!(asked.starts_with("GET /health HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("x-probe: yes") && asked.contains("user-agent: kube-probe/"), "{asked}");
        assert_eq!(once("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n").await.0, Ok(()));
        let (answer, _) = once("HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno").await;
        assert_eq!(answer.unwrap_err(), "HTTP probe failed with statuscode: 503");
        let (answer, _) = once("nonsense").await;
        assert!(answer.unwrap_err().starts_with("Get \"http://127.0.0.1:"));
    }
}
