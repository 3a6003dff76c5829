//! The document about a protected resource, which needs no proof: RFC 9728.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::json;

use crate::answer::{self, Answer};

/// Where it is, and below.
pub(crate) const PATH: &str = "/.well-known/oauth-protected-resource";

/// What it says.
#[derive(Debug, Clone)]
pub(crate) struct ProtectedResource {
    /// Nothing when the resource does not know its own address.
    document: Option<String>,
}

impl ProtectedResource {
    pub(super) fn new(resource: &str, issuer: &str, scopes: &[String]) -> Self {
        let openid = ["openid".to_owned()];
        let scopes = if scopes.is_empty() { &openid } else { scopes };
        let document = json!({
            "resource": resource,
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": scopes,
        });
        Self { document: (!resource.is_empty()).then(|| document.to_string()) }
    }

    /// Answers a request for it. Every page may read it.
    pub(crate) fn answer(&self, method: &Method, headers: &HeaderMap) -> Answer {
        let mut answer = match &self.document {
            _ if method == Method::OPTIONS => answer::empty(StatusCode::NO_CONTENT),
            None => answer::empty(StatusCode::NOT_FOUND),
            Some(document) => answer::json(StatusCode::OK, document.clone()),
        };
        let told = answer.headers_mut();
        let origin = headers.get(ORIGIN).cloned();
        told.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.unwrap_or(HeaderValue::from_static("*")));
        told.insert(VARY, HeaderValue::from_name(ORIGIN));
        told.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, OPTIONS"));
        let allowed = HeaderValue::from_static("mcp-protocol-version, Content-Type, Authorization");
        told.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        told.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        answer
    }
}
