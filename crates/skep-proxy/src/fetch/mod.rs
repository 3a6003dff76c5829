//! The one way in which the proxy itself asks others for something: issuers for keys, endpoints for decisions.
//!
//! Names are resolved, the addresses are checked, and only what was checked is dialled; that holds for every redirect,
//! too. An answer has a largest size and a longest time.

mod address;
mod resolve;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;

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
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};

use self::address::is_private;
use self::resolve::{Closed, Judge, Lookup, Resolver, check_literal, system};
use crate::tls::{self, TlsError};

/// How long a connection may take, and the head of an answer.
const HEAD: Duration = Duration::from_secs(10);
/// How long connections are kept for the next request.
const IDLE: Duration = Duration::from_mins(1);
/// How often a request may be sent elsewhere.
const REDIRECTS: usize = 5;

/// What may be asked, and whom to trust.
#[derive(Debug, Clone)]
pub struct FetchPolicy {
    /// Whether addresses that are not for everybody may be dialled.
    pub allows_private: bool,
    /// Whether servers may be asked without TLS.
    pub allows_http: bool,
    /// The authorities to trust instead of the machine's, as PEM.
    pub authorities: Option<Vec<u8>>,
    /// How long all of it may take, redirects included.
    pub patience: Duration,
}

impl Default for FetchPolicy {
    fn default() -> Self {
        Self { allows_private: false, allows_http: false, authorities: None, patience: Duration::from_secs(30) }
    }
}

/// Why there is no answer. What the other side said is not repeated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// The address is none that can be asked.
    #[error("{0} is no address of the form https://HOST/PATH")]
    Address(String),
    /// It would have to be asked without TLS.
    #[error("{0} is not https, and plain http is not allowed")]
    Plain(String),
    /// It is somewhere where requests must not go.
    #[error("{0}, which is not allowed")]
    Closed(String),
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

/// Asks others.
#[derive(Clone)]
pub struct Fetcher {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    is_closed: Judge,
    allows_http: bool,
    patience: Duration,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fetcher").field("allows_http", &self.allows_http).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Somebody who keeps to a policy.
    pub fn new(policy: &FetchPolicy) -> Result<Self, TlsError> {
        let is_closed: Judge = if policy.allows_private { |_| false } else { is_private };
        Self::judging(policy, is_closed, system())
    }

    fn judging(policy: &FetchPolicy, is_closed: Judge, lookup: Lookup) -> Result<Self, TlsError> {
        let mut connector = HttpConnector::new_with_resolver(Resolver { is_closed, lookup });
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(HEAD));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust(policy.authorities.as_deref())?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { client, is_closed, allows_http: policy.allows_http, patience: policy.patience })
    }

    /// Sends a request, and reads all of the answer, at most so many bytes of it.
    pub async fn send(&self, request: Request<Bytes>, largest: usize) -> Result<Response<Bytes>, FetchError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let sent = tokio::time::timeout(self.patience, self.follow(request, largest)).await;
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
        match tokio::time::timeout(HEAD.min(self.patience), self.client.request(sent)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(failure(host, &error)),
            Err(_) => Err(FetchError::TooSlow(host)),
        }
    }

    /// The host of an address that may be asked.
    fn check<'a>(&self, uri: &'a Uri) -> Result<&'a str, FetchError> {
        let no_address = || FetchError::Address(without_query(uri));
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(no_address)?;
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        match uri.scheme() {
            _ if has_user => return Err(no_address()),
            Some(scheme) if *scheme == Scheme::HTTPS => {}
            Some(scheme) if *scheme == Scheme::HTTP && self.allows_http => {}
            Some(scheme) if *scheme == Scheme::HTTP => return Err(FetchError::Plain(without_query(uri))),
            _ => return Err(no_address()),
        }
        check_literal(host, self.is_closed).map_err(|closed| FetchError::Closed(closed.to_string()))?;
        Ok(host)
    }
}

/// Whom to trust: the authorities that were given and no others, or else the machine's.
fn trust(authorities: Option<&[u8]>) -> Result<ClientConfig, TlsError> {
    let Some(authorities) = authorities else { return tls::client(&[], true) };
    let mut roots = RootCertStore::empty();
    for authority in tls::read_certificates(authorities)? {
        roots.add(authority)?;
    }
    Ok(ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

async fn read(response: Response<Incoming>, host: &str, largest: usize) -> Result<Response<Bytes>, FetchError> {
    let (parts, body) = response.into_parts();
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
fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    format!("{}://{}{}", uri.scheme_str().unwrap_or_default(), authority.unwrap_or_default(), uri.path())
}

fn failure(host: String, error: &hyper_util::client::legacy::Error) -> FetchError {
    let mut last: &dyn Error = error;
    loop {
        if let Some(closed) = last.downcast_ref::<Closed>() {
            return FetchError::Closed(closed.to_string());
        }
        match last.source() {
            Some(cause) => last = cause,
            None => return FetchError::Unreachable { host, cause: last.to_string() },
        }
    }
}
