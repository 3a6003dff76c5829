//! One request with everything that was found out about it, and the answers to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;

use super::content;
use super::negotiate::{self, Answer, Encoding, Form};
use super::options::Options;
use super::path::ResourcePath;
use super::registry::{Origin, Resource, Version};
use crate::auth::User;
use crate::status::{ApiError, Reason};
use crate::store::Key;

/// Bodies beyond this are refused, as by the real server.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A request about a resource.
pub struct Exchange {
    pub method: Method,
    pub path: ResourcePath,
    pub resource: Arc<Resource>,
    pub options: Options,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub answer: Answer,
    /// Told to the client beside the answer.
    warnings: Mutex<Vec<String>>,
    pub user: User,
}

/// Headers hold tokens and bodies hold secrets: neither is shown.
impl fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Exchange")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("user", &self.user.name)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    pub fn new(
        method: Method,
        path: ResourcePath,
        resource: Arc<Resource>,
        query: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Self, ApiError> {
        let options = Options::parse(query)?;
        let is_custom = resource.origin == Origin::Custom;
        let answer = negotiate::answer(header(&headers, ACCEPT.as_str()), is_custom)?;
        let mut warnings = Vec::new();
        if let Some(warning) = resource.version(&path.version).and_then(|version| version.deprecation.clone()) {
            warnings.push(warning);
        }
        let user = User::anonymous();
        Ok(Self { method, path, resource, options, headers, body, answer, warnings: Mutex::new(warnings), user })
    }

    /// What the server itself does to an object of the store, in the version in which it is stored.
    pub fn own(resource: Arc<Resource>, key: &Key, subresource: Option<&str>) -> Result<Self, ApiError> {
        let path = ResourcePath {
            group: resource.group.clone(),
            version: resource.storage_version.clone(),
            namespace: (!key.namespace.is_empty()).then(|| key.namespace.to_string()),
            resource: resource.plural.clone(),
            name: Some(key.name.to_string()),
            subresource: subresource.map(str::to_owned),
            rest: Vec::new(),
            watch: false,
        };
        Self::new(Method::PUT, path, resource, "", HeaderMap::new(), Bytes::new())
    }

    /// The version that the request speaks. Requests in versions that are not served do not get this far.
    pub fn version(&self) -> Result<&Version, ApiError> {
        self.resource.version(&self.path.version).ok_or_else(ApiError::no_such_path)
    }

    /// `apps/v1`
    pub fn api_version(&self) -> String {
        self.resource.api_version(&self.path.version)
    }

    /// Empty for resources of cluster scope.
    pub fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    pub fn content_type(&self) -> Option<&str> {
        header(&self.headers, CONTENT_TYPE.as_str())
    }

    pub fn user_agent(&self) -> &str {
        header(&self.headers, USER_AGENT.as_str()).unwrap_or_default()
    }

    /// Tells the client something beside the answer, once.
    pub fn warn(&self, warnings: Vec<String>) {
        let mut told = self.warnings.lock();
        for warning in warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }

    /// What is to be told beside the answer.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }

    /// An answer that is one JSON document.
    pub fn reply(&self, status: StatusCode, document: Bytes) -> Response<Body> {
        content::reply(Response::builder().status(status), self.answer.encoding, document)
    }

    pub fn reply_value(&self, status: StatusCode, document: &Value) -> Response<Body> {
        self.reply(status, document.to_string().into())
    }

    /// The answer to a write: the object, in the form that the client wants.
    pub fn reply_object(&self, status: StatusCode, object: &Value) -> Response<Body> {
        if self.answer.form == Form::Object {
            return self.reply_value(status, object);
        }
        match super::representation::of_object(self, object) {
            Ok(document) => self.reply_value(status, &document),
            Err(error) => failure(&error, self.answer.encoding),
        }
    }
}

/// Tells warnings beside an answer, be it good or bad.
pub fn tell_warnings(response: &mut Response<Body>, warnings: &[String]) {
    let headers =
        warnings.iter().filter_map(|warning| HeaderValue::from_bytes(warning_header(warning).as_bytes()).ok());
    for header in headers {
        response.headers_mut().append(WARNING, header);
    }
}

/// RFC 7234's form of a warning with no code of its own.
pub(super) fn warning_header(text: &str) -> String {
    let text: String = text.chars().filter(|character| !character.is_control()).collect();
    format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The answer to a request that failed.
pub fn failure(error: &ApiError, encoding: Encoding) -> Response<Body> {
    let status = StatusCode::from_u16(error.reason.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::builder().status(status);
    if let Some(seconds) = error.retry_after_seconds {
        response = response.header("Retry-After", seconds);
    }
    content::reply(response, encoding, error.status().to_string().into())
}

/// Reads a body, but no more than the limit, and not for longer.
pub async fn body(body: Body, limit: Duration) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(limit, axum::body::to_bytes(body, BODY_LIMIT)).await.map_err(|_| {
        let message = "Timeout: request did not complete within the allotted timeout";
        ApiError::new(Reason::Timeout, message)
    })?;
    read.map_err(|_| {
        ApiError::new(Reason::RequestEntityTooLarge, format!("Request entity too large: limit is {BODY_LIMIT}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Registry;

    #[test]
    fn debug_output_tells_neither_tokens_nor_bodies() {
        let registry = Registry::default();
        for row in crate::builtin::table() {
            registry.insert_builtin(row);
        }
        let secrets = registry.find("", "secrets").unwrap();
        let path = ResourcePath { version: "v1".into(), resource: "secrets".into(), ..ResourcePath::default() };
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer letmein"))]);
        let body = Bytes::from_static(br#"{"stringData":{"password":"hunter2"}}"#);
        let exchange = Exchange::new(Method::POST, path, secrets, "", headers, body).unwrap();
        let shown = format!("{exchange:?}");
        assert!(shown.contains("POST") && shown.contains("secrets"), "{shown}");
        assert!(!shown.contains("letmein") && !shown.contains("hunter2"), "{shown}");
    }
}
