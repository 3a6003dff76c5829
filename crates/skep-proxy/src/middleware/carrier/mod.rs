//! Documents on their way to an address that the configuration names, and what is said there. One question, one answer:
//! nothing is followed elsewhere, and neither time nor size is without a limit.

mod files;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;

use self::files::Stamp;
pub use self::files::{FilesError, TlsFiles};

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// How long a connection is kept for the next question.
const IDLE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarrierError {
    #[error("there is no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] hyper_util::client::legacy::Error),
    #[error("the answer ends before its end, or has more than {LARGEST_ANSWER} bytes")]
    Answer,
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The way to one address.
#[derive(Debug)]
pub(super) struct Carrier {
    url: Uri,
    timeout: Duration,
    files: TlsFiles,
    /// With the files as they were when it was made.
    client: Mutex<(Stamp, HttpClient)>,
}

impl Carrier {
    /// The files have to be there now. Later they are looked at again before every question.
    pub(super) fn new(url: Uri, timeout: Duration, files: TlsFiles) -> Result<Self, FilesError> {
        let stamp = files.stamp();
        let client = client(files.config(is_secure(&url))?);
        Ok(Self { url, timeout, files, client: Mutex::new((stamp, client)) })
    }

    /// Sends a document and waits for the answer, whose body counts only when it is a success.
    pub(super) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<(StatusCode, Bytes), CarrierError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers;
        let client = self.client();
        let answered = async {
            let response = client.request(request).await?;
            let status = response.status();
            if status != StatusCode::OK {
                return Ok((status, Bytes::new()));
            }
            let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
            Ok((status, body.map_err(|_| CarrierError::Answer)?.to_bytes()))
        };
        tokio::time::timeout(self.timeout, answered).await.unwrap_or(Err(CarrierError::Timeout(self.timeout)))
    }

    /// The client for the files as they are now. Files that cannot be used do not take the place of those that can:
    /// they may be half written.
    fn client(&self) -> HttpClient {
        let stamp = self.files.stamp();
        let mut current = self.client.lock();
        if current.0 != stamp {
            match self.files.config(is_secure(&self.url)) {
                Ok(config) => *current = (stamp, client(config)),
                Err(error) => {
                    tracing::warn!(%error, host = self.url.host(), "changed TLS files cannot be used; the old ones still are");
                }
            }
        }
        current.1.clone()
    }
}

fn is_secure(url: &Uri) -> bool {
    url.scheme() == Some(&http::uri::Scheme::HTTPS)
}

fn client(config: ClientConfig) -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(connector)
}
