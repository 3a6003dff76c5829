//! Who may talk to the proxy: no web page but those that were named, and no name that was made to point here.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use skep_mcp::fault::{Fault, INVALID_REQUEST};

use crate::answer::{self, Answer};

/// The rules of one listener.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The origins of web pages that may come; any when there are none.
    origins: Vec<String>,
    /// Whether `Host` has to name this machine, or whatever else leads here by the names of those origins.
    is_local: bool,
    hosts: Vec<String>,
}

impl Guard {
    /// The rules for a listener. Without a list of origins, one that only this machine can reach takes the pages that
    /// came from itself, and one that others can reach takes all.
    pub fn new(origins: &[String], scheme: &str, address: std::net::SocketAddr) -> Self {
        let is_local = address.ip().is_loopback();
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{scheme}://{host}:{}", address.port()));
        let origins: Vec<String> = match origins {
            [] if is_local => own.to_vec(),
            origins => origins.iter().map(|origin| normal(origin).unwrap_or_else(|| origin.clone())).collect(),
        };
        let hosts = origins.iter().filter_map(|origin| Some(origin.parse::<Uri>().ok()?.host()?.to_owned())).collect();
        Self { origins, is_local, hosts }
    }

    /// Refuses a request that comes from elsewhere.
    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Answer> {
        if !self.is_origin_allowed(headers) {
            return Err(forbidden("Origin not allowed"));
        }
        if self.is_local && !self.is_host_known(headers, uri) {
            return Err(forbidden(
                "Host not allowed: a proxy on 127.0.0.1 is localhost, or what its allowed origins are called",
            ));
        }
        Ok(())
    }

    /// HTTP/2 says the host in the address.
    fn is_host_known(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().ok()?.parse::<Authority>().ok());
        // A number cannot be made to point elsewhere.
        let is_number = |host: &str| host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let is_named = |host: &str| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        let is_known = |host: &str| host.eq_ignore_ascii_case("localhost") || is_number(host) || is_named(host);
        hosts.all(|host| host.is_some_and(|host| is_known(host.host()))) && uri.host().is_none_or(is_known)
    }

    /// Whether web pages may come from anywhere.
    pub(crate) fn is_open(&self) -> bool {
        self.origins.is_empty()
    }

    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(ORIGIN) || self.is_open() || self.listed(headers).is_some()
    }

    /// The origin that a request comes from, if it is one of those that were named.
    pub(crate) fn listed<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let mut values = headers.get_all(ORIGIN).iter();
        let origin = values.next().filter(|_| values.next().is_none())?;
        let known = normal(origin.to_str().ok()?)?;
        self.origins.contains(&known).then_some(origin)
    }
}

fn forbidden(message: &'static str) -> Answer {
    answer::fault(StatusCode::FORBIDDEN, &Fault::new(INVALID_REQUEST, message), None)
}

/// Whether a text names an origin. Any other is that of no page at all.
pub fn is_origin(text: &str) -> bool {
    normal(text).is_some()
}

/// An origin in the form in which origins are compared.
fn normal(origin: &str) -> Option<String> {
    let uri: Uri = origin.trim_end_matches('/').parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?.as_str());
    let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none() && !authority.contains('@');
    is_bare.then(|| format!("{scheme}://{authority}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(guard: &Guard, headers: &[(http::HeaderName, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        guard.check(&map, &Uri::from_static("/mcp")).is_ok()
    }

    #[test]
    fn a_local_listener_takes_what_comes_from_this_machine() {
        let guard = Guard::new(&[], "http", ([127, 0, 0, 1], 8080).into());
        for (host, origin, expected) in [
            ("127.0.0.1:8080", None, true),
            ("LOCALHOST", Some("http://localhost:8080"), true),
            ("[::1]:9", Some("HTTP://[::1]:8080"), true),
            ("127.0.0.2", None, true),
            ("evil.example", None, false),
            ("localhost.", None, false),
            ("2130706433", None, false),
            ("0.0.0.0", None, false),
            ("localhost.evil.example", None, false),
            ("localhost", Some("http://evil.example"), false),
            ("localhost", Some("http://localhost:9"), false),
            ("localhost", Some("https://localhost:8080"), false),
            ("localhost", Some("http://user@localhost:8080"), false),
            ("localhost", Some("null"), false),
        ] {
            let origin = origin.map(|origin| (ORIGIN, origin));
            let headers: Vec<_> = [(HOST, host)].into_iter().chain(origin).collect();
            assert_eq!(is_allowed(&guard, &headers), expected, "{headers:?}");
        }
        let own = "http://localhost:8080";
        assert!(!is_allowed(&guard, &[(ORIGIN, own), (ORIGIN, own)]));
    }

    #[test]
    fn a_local_listener_behind_another_proxy_is_called_what_its_origins_are_called() {
        let guard = Guard::new(&["https://Hive.example".to_owned()], "http", ([127, 0, 0, 1], 8080).into());
        for (host, expected) in [("hive.example", true), ("HIVE.example:443", true), ("localhost:8080", true)]
            .into_iter()
            .chain([("bee.hive.example", false), ("evil.example", false)])
        {
            assert_eq!(is_allowed(&guard, &[(HOST, host)]), expected, "{host}");
        }
    }

    #[test]
    fn a_listener_for_others_goes_by_its_list() {
        let open = Guard::new(&[], "http", ([0, 0, 0, 0], 8080).into());
        assert!(open.is_open());
        assert!(is_allowed(&open, &[(HOST, "hive.example"), (ORIGIN, "https://any.example")]));
        assert!(is_origin("https://Hive.example/") && is_origin("app://hive"));
        for text in
            ["not a url", "hive.example", "*", "null", "", "https://hive.example/page", "https://u@hive.example"]
        {
            assert!(!is_origin(text), "{text}");
        }
        let listed = Guard::new(&["https://Hive.example/".to_owned()], "http", ([0, 0, 0, 0], 8080).into());
        assert!(is_allowed(&listed, &[(ORIGIN, "https://hive.EXAMPLE")]));
        assert!(!is_allowed(&listed, &[(ORIGIN, "https://hive.example:444")]));
        assert!(is_allowed(&listed, &[(HOST, "any")]));
    }
}
