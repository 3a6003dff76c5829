//! The client side of the proxy: a pool of connections to the server.

mod breaks;
mod failures;
mod lines;

use std::sync::Arc;

use bytes::Bytes;
use http::header::LOCATION;
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{HttpConnector, HttpInfo};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use self::breaks::Breaks;
use self::failures::Failures;
pub(crate) use self::lines::FromServer;
use self::lines::{Leaving, LineError, Lines};
use super::target::Target;
use crate::fetch::resolve::Resolver;
use crate::limits::Limits;
use crate::middleware::aws_sts::Signer;
use crate::tls::{self, TlsError};

/// How often a server may send a request elsewhere.
const REDIRECTS: usize = 10;

/// Sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    /// For servers without TLS.
    lines: Lines,
    /// For those with it, which may speak HTTP/2.
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    resolver: Resolver,
    failures: Arc<Failures>,
    breaks: Arc<Breaks>,
}

/// A request that can be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whoever signs it, each time that it is sent.
    pub(crate) signer: Option<Signer>,
}

impl Outgoing {
    /// The request as it is sent this time.
    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(signer) = &self.signer {
            signer.sign(&self.method, &self.uri, request.headers_mut(), &self.body);
        }
        request
    }
}

/// Why a request got no answer.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Whether the server was not even reached, so that it cannot have done anything.
    pub(crate) is_unreached: bool,
}

impl Upstream {
    pub(crate) fn new(target: &Target, limits: &Limits) -> Result<Self, TlsError> {
        Self::resolving(target, limits, target.resolver())
    }

    /// The same, for whom names are where this one finds them.
    pub(super) fn resolving(target: &Target, limits: &Limits, resolver: Resolver) -> Result<Self, TlsError> {
        let tls = tls::client(&target.authorities, target.scheme == Scheme::HTTPS)?;
        let mut connector = HttpConnector::new_with_resolver(resolver.clone());
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits.head));
        let lines = Lines::new(connector.clone(), limits.idle);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_all_versions()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits.idle)
            .build(connector);
        let (failures, breaks) = (Failures::of(target.origin()), Breaks::of(target.origin()));
        Ok(Self { lines, client, resolver, failures: Arc::new(failures), breaks: Arc::new(breaks) })
    }

    /// Sends a request, and again to where the server says.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<Response<FromServer>, Failed> {
        let response = self.send_once(outgoing).await?;
        match redirected(&outgoing.uri, &response) {
            Some(uri) => Box::pin(self.follow(Outgoing { uri, ..outgoing.clone() })).await,
            None => Ok(response),
        }
    }

    async fn follow(&self, mut outgoing: Outgoing) -> Result<Response<FromServer>, Failed> {
        let mut response = self.send_once(&outgoing).await?;
        for _ in 1..REDIRECTS {
            let Some(uri) = redirected(&outgoing.uri, &response) else { break };
            outgoing.uri = uri;
            response = self.send_once(&outgoing).await?;
        }
        Ok(response)
    }

    /// Sends a request.
    pub(crate) async fn send_once(&self, outgoing: &Outgoing) -> Result<Response<FromServer>, Failed> {
        let (uri, failures) = (&outgoing.uri, &*self.failures);
        self.resolver.check(uri.host().unwrap_or_default()).map_err(|closed| failures.tell_closed(&closed))?;
        let response = if uri.scheme() == Some(&Scheme::HTTP) {
            let failed = |error: LineError| failures.tell(&error, matches!(error, LineError::Unreached(_)), uri);
            let mut leaving = Leaving::new(outgoing.request()).map_err(failed)?;
            self.lines.send(&mut leaving).await.map_err(failed)?
        } else {
            let response = self.client.request(outgoing.request()).await;
            response.map_err(|error| failures.tell(&error, error.is_connect(), uri))?.map(FromServer::from)
        };
        failures.end();
        Ok(response.map(|body| body.told(&self.breaks)))
    }

    /// Closes connections that nobody has used for long.
    pub(super) fn sweep(&self) {
        self.lines.sweep();
    }
}

/// The address of the server that answered, if it can be dialled by that.
pub(crate) fn peer_origin(target: &Target, extensions: &http::Extensions) -> String {
    let is_plain = target.scheme == Scheme::HTTP;
    let info = extensions.get::<HttpInfo>().filter(|_| is_plain);
    info.map_or_else(|| target.origin(), |info| format!("http://{}", info.remote_addr()))
}

/// Where to send the request again: the same server, never with less protection than before.
fn redirected(asked: &Uri, response: &Response<FromServer>) -> Option<Uri> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?.to_str().ok()?;
    resolve(asked, location)
}

/// An address that a server names, if it is one of its own, never with less protection than the one that was asked.
pub(crate) fn resolve(asked: &Uri, location: &str) -> Option<Uri> {
    let origin = format!("{}://{}", asked.scheme_str()?, asked.authority()?);
    let to = match location.split_once("://") {
        Some((scheme, _)) if !scheme.contains('/') => location.to_owned(),
        _ if location.starts_with("//") => format!("{}:{location}", asked.scheme_str()?),
        _ if location.starts_with('/') => format!("{origin}{location}"),
        _ if location.starts_with('?') => format!("{origin}{}{location}", asked.path()),
        _ => {
            let folder = asked.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{origin}{folder}/{location}")
        }
    };
    let to: Uri = to.split('#').next()?.parse().ok()?;
    let is_same = to.authority()?.as_str().eq_ignore_ascii_case(asked.authority()?.as_str());
    let is_weaker = asked.scheme_str() == Some("https") && to.scheme_str() != Some("https");
    (is_same && !is_weaker && matches!(to.scheme_str(), Some("http" | "https"))).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_within_the_same_server_only() {
        for (asked, location, expected) in [
            ("http://a:1/x/mcp?q", "/y", Some("http://a:1/y")),
            ("http://a:1/x/mcp", "mcp/", Some("http://a:1/x/mcp/")),
            ("http://a:1/x/mcp", "?z=1", Some("http://a:1/x/mcp?z=1")),
            ("http://a:1/", "http://A:1/z#f", Some("http://A:1/z")),
            ("http://a:1/", "http://a:2/", None),
            ("http://a:1/", "//b/", None),
            ("https://a/", "http://a/", None),
            ("http://a/", "https://a/", Some("https://a/")),
            ("http://a/", "javascript://a/", None),
            ("http://a/", "http://[", None),
        ] {
            let found = resolve(&Uri::from_static(asked), location).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{asked} -> {location}");
        }
    }
}
