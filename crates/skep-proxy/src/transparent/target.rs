//! Where requests go.

use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Uri};
use rustls::pki_types::CertificateDer;

use crate::fetch::resolve::Resolver;
use crate::fetch::without_user;
use crate::tls::{self, TlsError};

/// What the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// HTTP+SSE.
    Sse,
    /// Streamable HTTP.
    Streamable,
}

impl Dialect {
    /// Its name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Streamable => "streamable-http",
        }
    }
}

/// Why an address is none that requests can go to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It cannot be read.
    #[error("{0} is no address")]
    NoAddress(String),
    /// It has no host.
    #[error("{0} names no host")]
    NoHost(String),
    /// It says who asks.
    #[error(
        "the address at {0} carries a user name; hint: leave it out, and have the proxy send an Authorization header"
    )]
    User(String),
    /// It is neither http nor https.
    #[error("{0} is neither http nor https")]
    Scheme(String),
}

/// The server behind a proxy.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) dialect: Dialect,
    /// Whether somebody else runs it.
    pub(crate) is_remote: bool,
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    /// The same, as requests name it.
    pub(super) host: HeaderValue,
    /// A remote server's own path, which takes the place of the client's.
    path: Option<String>,
    /// A remote server's own query, which comes before the client's.
    query: Option<String>,
    /// Whether it may be at an address that is not for everybody.
    allows_private: bool,
    /// Who may vouch for it besides those whom this machine trusts.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
}

impl Target {
    /// A server of ours, at an address without a path.
    pub fn local(dialect: Dialect, address: &str) -> Result<Self, TargetError> {
        Ok(Self { path: None, query: None, ..Self::read(dialect, address, false)? })
    }

    /// A server of somebody else. Wherever its name leads, requests go only to addresses that are for everybody.
    pub fn remote(dialect: Dialect, address: &str) -> Result<Self, TargetError> {
        Self::read(dialect, address, true)
    }

    /// Lets a server of somebody else be on this machine or in its networks. Where clouds answer machines about themselves
    /// it still must not be.
    #[must_use]
    pub fn allowing_private(self) -> Self {
        Self { allows_private: true, ..self }
    }

    /// Finds it.
    pub(super) fn resolver(&self) -> Resolver {
        // One of ours is where we have put it.
        if self.is_remote { Resolver::new(self.allows_private) } else { Resolver::open() }
    }

    /// Lets others vouch for it, too: certificates of authorities, as PEM.
    pub fn trusting(mut self, authorities: &[u8]) -> Result<Self, TlsError> {
        self.authorities = tls::read_certificates(authorities)?;
        Ok(self)
    }

    fn read(dialect: Dialect, written: &str, is_remote: bool) -> Result<Self, TargetError> {
        let shown = || without_user(written).into_owned();
        let address: Uri = written.parse().map_err(|_| TargetError::NoAddress(shown()))?;
        let scheme = address.scheme().cloned().ok_or_else(|| TargetError::Scheme(shown()))?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(TargetError::Scheme(shown()));
        }
        let authority = address.authority().cloned().ok_or_else(|| TargetError::NoHost(shown()))?;
        if let Some((_, host)) = authority.as_str().rsplit_once('@') {
            // Not all of it, because a password may be in it.
            return Err(TargetError::User(host.to_owned()));
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| TargetError::NoHost(shown()))?;
        // An address without a path reads as one with the path `/`.
        let has_path = written.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        Ok(Self {
            dialect,
            is_remote,
            scheme,
            host,
            authority,
            path: has_path.then(|| address.path().to_owned()),
            query: address.query().map(str::to_owned),
            allows_private: false,
            authorities: Vec::new(),
        })
    }

    /// The address of the server itself.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Where a request goes to a server that speaks this, as far as the server is concerned.
    pub(crate) fn path_and_query(&self, dialect: Dialect, method: &Method, asked: &Uri) -> Option<PathAndQuery> {
        if self.path.is_none() && self.query.is_none() && asked.query() != Some("") {
            return asked.path_and_query().filter(|asked| asked.as_str().starts_with('/')).cloned();
        }
        // Messages of HTTP+SSE follow the address that the server announced.
        let is_announced = dialect == Dialect::Sse && method == Method::POST;
        let path = self.path.as_deref().filter(|_| !is_announced).unwrap_or(asked.path());
        let query: Vec<&str> =
            self.query.as_deref().into_iter().chain(asked.query()).filter(|q| !q.is_empty()).collect();
        if query.is_empty() { path.parse().ok() } else { format!("{path}?{}", query.join("&")).parse().ok() }
    }

    /// An address at the server itself.
    pub(crate) fn at(&self, path_and_query: PathAndQuery) -> Option<Uri> {
        let mut parts = Parts::default();
        (parts.scheme, parts.authority) = (Some(self.scheme.clone()), Some(self.authority.clone()));
        parts.path_and_query = Some(path_and_query);
        Uri::from_parts(parts).ok()
    }
}

/// Whether an address is at this server.
pub(super) fn is_at(uri: &Uri, origin: &str) -> bool {
    let (scheme, authority) = origin.split_once("://").unwrap_or_default();
    uri.scheme_str() == Some(scheme) && uri.authority().is_some_and(|known| known.as_str() == authority)
}

/// An address at a server.
pub(super) fn join(origin: &str, path_and_query: &PathAndQuery) -> Option<Uri> {
    format!("{}{path_and_query}", origin.trim_end_matches('/')).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(target: &Target, method: &Method, asked: &'static str) -> String {
        let path = target.path_and_query(target.dialect, method, &Uri::from_static(asked)).unwrap();
        let there = target.at(path).unwrap();
        assert!(is_at(&there, &target.origin()) && !is_at(&there, "http://elsewhere"), "{there}");
        there.to_string()
    }

    #[test]
    fn a_local_server_gets_what_was_asked_for() {
        let target = Target::local(Dialect::Streamable, "http://mcp-a:8080").unwrap();
        assert_eq!(reached(&target, &Method::POST, "/mcp?a=1%2C2"), "http://mcp-a:8080/mcp?a=1%2C2");
        assert_eq!(reached(&target, &Method::GET, "/x/y"), "http://mcp-a:8080/x/y");
    }

    #[test]
    fn the_path_and_query_of_a_remote_server_come_first() {
        let remote = |address| Target::remote(Dialect::Streamable, address).unwrap();
        let with_path = remote("https://r.example/v1/mcp?key=a,b");
        assert_eq!(reached(&with_path, &Method::POST, "/mcp?c=1"), "https://r.example/v1/mcp?key=a,b&c=1");
        assert_eq!(reached(&remote("https://r.example"), &Method::POST, "/mcp"), "https://r.example/mcp");
        assert_eq!(reached(&remote("https://r.example/"), &Method::POST, "/mcp"), "https://r.example/");
        let sse = Target::remote(Dialect::Sse, "https://r.example/v1/sse").unwrap();
        assert_eq!(reached(&sse, &Method::GET, "/sse"), "https://r.example/v1/sse");
        assert_eq!(reached(&sse, &Method::POST, "/v1/messages?s=1"), "https://r.example/v1/messages?s=1");
    }

    #[test]
    fn other_addresses_are_refused() {
        for address in ["ftp://a", "/mcp", "a:1"] {
            assert!(Target::local(Dialect::Sse, address).is_err(), "{address}");
        }
        for address in ["ftp://bee:honey@a", "http://bee:ho ney@a"] {
            let told = Target::local(Dialect::Sse, address).unwrap_err().to_string();
            assert!(told.contains("://a ") && !told.contains("ney"), "{told}");
        }
        let told = Target::remote(Dialect::Sse, "https://bee:honey@r.example:1/sse").unwrap_err().to_string();
        assert!(told.contains("at r.example:1 carries a user name") && !told.contains("honey"), "{told}");
    }
}
