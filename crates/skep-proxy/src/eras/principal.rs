//! Who a client is that names itself in every request.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use super::http::HttpLine;

/// Headers that say nothing about who a client is.
const IMPERSONAL: [&str; 14] = [
    "host",
    "user-agent",
    "accept-language",
    "connection",
    "cache-control",
    "pragma",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
    "traceparent",
    "tracestate",
    "baggage",
    "origin",
];

/// Who a client is: whom the chain has found it to be, and what it proves itself with to the server. A header that all
/// clients get from us says nothing about who they are. Nothing when it does neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Principal {
    caller: Option<Arc<str>>,
    headers: Option<Vec<(HeaderName, HeaderValue)>>,
}

impl fmt::Debug for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_known() { "Principal(known)" } else { "Principal(anonymous)" })
    }
}

impl Principal {
    /// Whether it can be told from others.
    pub(super) fn is_known(&self) -> bool {
        self.caller.is_some() || self.headers.is_some()
    }

    /// Somebody who proves nothing.
    pub(crate) fn unknown() -> Self {
        Self { caller: None, headers: None }
    }

    #[cfg(test)]
    pub(super) fn known(caller: &str) -> Self {
        Self { caller: Some(caller.into()), headers: None }
    }

    /// Whoever comes by this line.
    pub(crate) fn of(line: &HttpLine) -> Self {
        let caller = line.caller().cloned();
        if !line.headers().contains_key(AUTHORIZATION) {
            return Self { caller, headers: None };
        }
        let is_personal =
            |name: &HeaderName| !IMPERSONAL.contains(&name.as_str()) && !name.as_str().starts_with("mcp-");
        let headers = line.headers().iter().filter(|(name, _)| is_personal(name));
        let mut headers: Vec<_> = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        headers.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        Self { caller, headers: Some(headers) }
    }
}
