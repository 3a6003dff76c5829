//! The one way in which the proxy itself asks others for something: issuers for keys, callbacks and endpoints for
//! decisions.
//!
//! Names are resolved, the addresses are checked, and only what was checked is dialled; that holds for every redirect,
//! too. An answer has a largest size and a longest time. The files of TLS may change while the proxy runs.

mod current;
#[cfg(test)]
pub(crate) mod inside;
pub(crate) mod resolve;
#[cfg(test)]
pub(crate) mod tests;
mod tls_files;

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, LOCATION};
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;

use self::current::Current;
use self::resolve::{Closed, Resolver};
pub use self::tls_files::{FilesError, TlsFiles};
use crate::lapses::Lapses;

/// How long connections are kept for the next request.
const IDLE: Duration = Duration::from_mins(1);
/// How often a request may be sent elsewhere.
const REDIRECTS: usize = 5;

/// What may be asked, and whom to trust.
#[derive(Debug, Clone)]
pub struct FetchPolicy {
    /// Whether addresses of this machine and of its networks may be dialled. Those where clouds answer machines about
    /// themselves never are.
    pub allows_private: bool,
    /// Whether servers may be asked without TLS.
    pub allows_http: bool,
    /// Whom to trust, and who we are.
    pub tls: TlsFiles,
    /// How long a connection may take, and the head of an answer.
    pub head: Duration,
    /// How long all of it may take, redirects included.
    pub patience: Duration,
}

impl Default for FetchPolicy {
    fn default() -> Self {
        Self {
            allows_private: false,
            allows_http: false,
            tls: TlsFiles::default(),
            head: Duration::from_secs(10),
            patience: Duration::from_secs(30),
        }
    }
}

impl FetchPolicy {
    /// The host of an address that may be asked, as far as the address itself tells.
    pub fn check<'a>(&self, uri: &'a Uri) -> Result<&'a str, FetchError> {
        permitted(uri, self.allows_http, &Resolver::new(self.allows_private))
    }

    /// Which of two switches would let an address be asked that may not be: the one for plain http, and the one for
    /// private addresses. None of them for an address that is never asked.
    pub fn lacking<'a>(&self, uri: &Uri, http: &'a str, private: &'a str) -> Vec<&'a str> {
        let may = |allows_http, allows_private| permitted(uri, allows_http, &Resolver::new(allows_private)).is_ok();
        if !may(true, true) {
            return Vec::new();
        }
        let needed = [(!may(self.allows_http, true), http), (!may(true, self.allows_private), private)];
        needed.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, switch)| switch).collect()
    }
}

/// Why there is no answer. What the other side said is not repeated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// The address is none that can be asked.
    #[error("{0} is no address of the form https://HOST/PATH")]
    Address(String),
    /// It says who asks. A password may be part of that, and is not repeated.
    #[error("the address at {0} carries a user name; leave it out")]
    User(String),
    /// It would have to be asked without TLS.
    #[error("{0} is not https, and plain http is not allowed")]
    Plain(String),
    /// It is somewhere where requests must not go.
    #[error("{cause}, which is not allowed")]
    Closed {
        cause: String,
        /// Whether nobody could allow it.
        is_barred: bool,
    },
    /// It cannot be reached, or says something that is no HTTP.
    #[error("{host} cannot be asked: {cause}")]
    Unreachable { host: String, cause: String },
    /// It took too long.
    #[error("{0} did not answer in time")]
    TooSlow(String),
    /// The answer is larger than it may be.
    #[error("the answer of {0} is too large")]
    TooLarge(String),
    /// It sends requests around in circles, or back to where they would not be protected.
    #[error("{0} sends requests elsewhere, where they must not go")]
    Redirect(String),
}

impl From<&Closed> for FetchError {
    fn from(closed: &Closed) -> Self {
        Self::Closed { cause: closed.to_string(), is_barred: closed.is_barred }
    }
}

type HttpClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Asks others.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    policy: FetchPolicy,
    resolver: Resolver,
    client: Mutex<Current<HttpClient>>,
    /// How the files do that it is made of.
    lapses: Lapses,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fetcher").field("policy", &self.0.policy).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Somebody who keeps to a policy. Its files have to be there now; later they are looked at before every request.
    pub fn new(policy: FetchPolicy) -> Result<Self, FilesError> {
        let resolver = Resolver::new(policy.allows_private);
        Self::judging(policy, resolver)
    }

    fn judging(policy: FetchPolicy, resolver: Resolver) -> Result<Self, FilesError> {
        let stamp = policy.tls.stamp();
        let client = client(&policy, resolver.clone())?;
        let client = Mutex::new(Current::new(stamp, client));
        Ok(Self(Arc::new(Inner { policy, resolver, client, lapses: Lapses::default() })))
    }

    /// The client for the files as they are now. Files that cannot be used do not take the place of those that can:
    /// they may be half written.
    fn client(&self) -> HttpClient {
        let Inner { policy, resolver, client: current, lapses } = &*self.0;
        let (stamp, now) = (policy.tls.stamp(), Instant::now());
        let (usable, unusable) = current.lock().renew(stamp, now, || client(policy, resolver.clone()));
        match unusable {
            Some(error) => {
                if let Some(times) = lapses.failed() {
                    let error = &*error;
                    tracing::warn!(error, times, "changed TLS files cannot be used; the old ones still are");
                }
            }
            None if lapses.is_over() => tracing::info!("changed TLS files can be used again"),
            None => {}
        }
        usable
    }

    /// Sends a request, and reads all of the answer if it is a success, at most so many bytes of it.
    pub async fn send(&self, request: Request<Bytes>, largest: usize) -> Result<Response<Bytes>, FetchError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let sent = tokio::time::timeout(self.0.policy.patience, self.follow(request, largest)).await;
        sent.unwrap_or(Err(FetchError::TooSlow(host)))
    }

    /// A request without a body follows where it is sent; any other one stays.
    async fn follow(&self, mut request: Request<Bytes>, largest: usize) -> Result<Response<Bytes>, FetchError> {
        for _ in 0..=REDIRECTS {
            let response = self.send_once(&request).await?;
            let host = request.uri().host().unwrap_or_default();
            if !is_redirect(response.status()) {
                return read(response, host, largest).await;
            }
            let to = moved(&request, &response).ok_or_else(|| FetchError::Redirect(host.to_owned()))?;
            if to.authority() != request.uri().authority() {
                // What was meant for one is not for another.
                request.headers_mut().remove(AUTHORIZATION);
                request.headers_mut().remove(COOKIE);
            }
            *request.uri_mut() = to;
        }
        Err(FetchError::Redirect(request.uri().host().unwrap_or_default().to_owned()))
    }

    async fn send_once(&self, request: &Request<Bytes>) -> Result<Response<Incoming>, FetchError> {
        let host = self.check(request.uri())?.to_owned();
        let mut sent = Request::new(Full::new(request.body().clone()));
        *sent.method_mut() = request.method().clone();
        *sent.uri_mut() = request.uri().clone();
        *sent.headers_mut() = request.headers().clone();
        match tokio::time::timeout(self.0.policy.head, self.client().request(sent)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(failure(host, &error)),
            Err(_) => Err(FetchError::TooSlow(host)),
        }
    }

    /// The host of an address that may be asked, as far as the address itself tells.
    pub fn check<'a>(&self, uri: &'a Uri) -> Result<&'a str, FetchError> {
        permitted(uri, self.0.policy.allows_http, &self.0.resolver)
    }
}

/// The host of an address that may be asked by somebody who finds hosts so.
fn permitted<'a>(uri: &'a Uri, allows_http: bool, resolver: &Resolver) -> Result<&'a str, FetchError> {
    let no_address = || FetchError::Address(without_query(uri));
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(no_address)?;
    check_user(uri)?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => {}
        Some(scheme) if *scheme == Scheme::HTTP && allows_http => {}
        Some(scheme) if *scheme == Scheme::HTTP => return Err(FetchError::Plain(without_query(uri))),
        _ => return Err(no_address()),
    }
    resolver.check(host).map_err(|closed| FetchError::from(&closed))?;
    Ok(host)
}

/// Refuses an address that says who asks.
fn check_user(uri: &Uri) -> Result<(), FetchError> {
    match uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')) {
        Some((_, host)) => Err(FetchError::User(host.to_owned())),
        None => Ok(()),
    }
}

/// What is written where an address should be, without what may be the name and the password of a user.
pub(crate) fn without_user(written: &str) -> Cow<'_, str> {
    let Some((before, rest)) = written.rsplit_once('@') else { return Cow::Borrowed(written) };
    match before.split_once("://") {
        Some((scheme, _)) => Cow::Owned(format!("{scheme}://{rest}")),
        None => Cow::Borrowed(rest),
    }
}

fn client(policy: &FetchPolicy, resolver: Resolver) -> Result<HttpClient, FilesError> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(policy.head));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(policy.tls.config(!policy.allows_http)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    let mut builder = Client::builder(TokioExecutor::new());
    Ok(builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(connector))
}

/// All of an answer. What is said about a failure does not count, however large it is.
async fn read(response: Response<Incoming>, host: &str, largest: usize) -> Result<Response<Bytes>, FetchError> {
    let (parts, body) = response.into_parts();
    if !parts.status.is_success() {
        return Ok(Response::from_parts(parts, Bytes::new()));
    }
    match Limited::new(body, largest).collect().await {
        Ok(body) => Ok(Response::from_parts(parts, body.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(FetchError::TooLarge(host.to_owned())),
        Err(error) => Err(FetchError::Unreachable { host: host.to_owned(), cause: error.to_string() }),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Where a request is to go next; nothing where it must not go.
fn moved(request: &Request<Bytes>, response: &Response<Incoming>) -> Option<Uri> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let base = url::Url::parse(&request.uri().to_string()).ok();
    let to = base.zip(location).and_then(|(base, location)| base.join(location).ok());
    let to: Option<Uri> = to.and_then(|mut to| {
        to.set_fragment(None);
        to.as_str().parse().ok()
    });
    let is_weaker = |to: &Uri| request.uri().scheme() == Some(&Scheme::HTTPS) && to.scheme() != Some(&Scheme::HTTPS);
    to.filter(|to| request.method() == Method::GET && !is_weaker(to))
}

/// An address without what may be a secret.
pub(crate) fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let scheme = uri.scheme_str().map(|scheme| format!("{scheme}://")).unwrap_or_default();
    format!("{scheme}{}{}", authority.unwrap_or_default(), uri.path())
}

fn failure(host: String, error: &hyper_util::client::legacy::Error) -> FetchError {
    if let Some(closed) = Closed::within(error) {
        return closed.into();
    }
    FetchError::Unreachable { host, cause: cause(error) }
}

/// What an error comes from in the end, which says more than that a connection failed.
pub(crate) fn cause(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
