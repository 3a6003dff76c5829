//! How the proxy is reached when something stands before it: what that says about itself, if it may.

use http::header::HOST;
use http::{HeaderMap, Uri};

/// Whom to believe about the address that clients know.
#[derive(Debug, Clone, Default)]
pub struct Forwarded {
    /// Whether `X-Forwarded-*` headers are believed.
    pub is_trusted: bool,
    /// What the paths that clients know begin with; it wins over what a header says.
    pub prefix: String,
}

/// The host that a request is for. Connections of HTTP/2 say it in the address.
pub(crate) fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    headers.get(HOST).and_then(|host| host.to_str().ok()).or_else(|| Some(uri.authority()?.as_str()))
}

/// The address that clients know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) scheme: String,
    pub(crate) host: Option<String>,
    /// With a slash before and none after, or empty.
    pub(crate) prefix: String,
}

impl Forwarded {
    /// Where a client reached us whose request came with these headers.
    pub(crate) fn reached(&self, headers: &HeaderMap, scheme: &str, host: Option<&str>) -> Reached {
        let told = |name: &str| {
            let value = headers.get(name).filter(|_| self.is_trusted)?.to_str().ok()?;
            value.split(',').next().map(str::trim).filter(|value| !value.is_empty())
        };
        let outer = told("x-forwarded-host").filter(|host| host.parse::<http::uri::Authority>().is_ok());
        let outer = outer.map(|host| match told("x-forwarded-port").filter(|port| port.parse::<u16>().is_ok()) {
            Some(port) => format!("{}:{port}", without_port(host)),
            None => host.to_owned(),
        });
        let scheme = told("x-forwarded-proto").filter(|scheme| matches!(*scheme, "http" | "https")).unwrap_or(scheme);
        let prefix = if self.prefix.is_empty() { told("x-forwarded-prefix").unwrap_or_default() } else { &self.prefix };
        Reached { scheme: scheme.to_owned(), host: outer.or_else(|| host.map(str::to_owned)), prefix: normal(prefix) }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn normal(prefix: &str) -> String {
    let inner = prefix.trim_matches('/');
    if inner.is_empty() { String::new() } else { format!("/{inner}") }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn reached(is_trusted: bool, prefix: &str, headers: &[(&'static str, &'static str)]) -> String {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        let forwarded = Forwarded { is_trusted, prefix: prefix.to_owned() };
        let reached = forwarded.reached(&headers.collect(), "http", Some("own:1"));
        format!("{}://{}{}", reached.scheme, reached.host.unwrap(), reached.prefix)
    }

    #[test]
    fn what_stands_before_us_is_believed_when_it_may_be() {
        let all = [
            ("x-forwarded-host", "pub.example:9"),
            ("x-forwarded-port", "443"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-prefix", "hive/"),
        ];
        assert_eq!(reached(false, "", &all), "http://own:1");
        assert_eq!(reached(true, "", &all), "https://pub.example:443/hive");
        assert_eq!(reached(true, "/own/", &all), "https://pub.example:443/own");
        assert_eq!(reached(true, "", &all[1..2]), "http://own:1");
        assert_eq!(reached(true, "", &[("x-forwarded-host", "a b"), ("x-forwarded-proto", "gopher")]), "http://own:1");
    }
}
