//! An endpoint that gives tokens for tokens. What it says when it refuses is told to nobody.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Uri};
use serde_json::{Map, Value};

use crate::fetch::{FetchError, FetchPolicy, Fetcher, FilesError};
use crate::middleware::client_credentials::basic;

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why an endpoint cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is none.
    #[error("{0:?} is no address that begins with https:// or http://")]
    Url(String),
    /// It is where nobody may be asked.
    #[error(transparent)]
    Address(#[from] FetchError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] FilesError),
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum GrantError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the endpoint answers with the status {0}")]
    Status(u16),
    #[error("the endpoint refuses")]
    Refused,
    #[error("the answer of the endpoint is no JSON object")]
    Garbage,
    #[error("the answer of the endpoint has no {0}")]
    Missing(&'static str),
}

/// The endpoint, and who we are there.
pub(super) struct TokenEndpoint {
    url: Uri,
    fetcher: Fetcher,
    credentials: Option<HeaderValue>,
}

impl fmt::Debug for TokenEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenEndpoint").field("host", &self.url.host()).finish_non_exhaustive()
    }
}

impl TokenEndpoint {
    pub(super) fn new(url: &str, client: &str, secret: &str) -> Result<Self, EndpointError> {
        let address: Uri = url.parse().map_err(|_| EndpointError::Url(url.to_owned()))?;
        let is_plain = address.scheme_str() == Some("http");
        if is_plain {
            tracing::warn!(host = address.host(), "tokens are exchanged without TLS, which protects nothing");
        }
        let fetcher = Fetcher::new(FetchPolicy {
            // It may be a service of the same cluster.
            allows_private: true,
            allows_http: is_plain,
            head: PATIENCE,
            patience: PATIENCE,
            ..FetchPolicy::default()
        })?;
        fetcher.check(&address)?;
        Ok(Self { url: address, fetcher, credentials: basic(client, secret) })
    }

    /// The token for a form, which has to come with these members.
    pub(super) async fn ask(&self, form: String, required: &[&'static str]) -> Result<String, GrantError> {
        let mut request = Request::new(form.into());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(credentials) = &self.credentials {
            headers.insert(AUTHORIZATION, credentials.clone());
        }
        let answer = self.fetcher.send(request, LARGEST_ANSWER).await?;
        if !answer.status().is_success() {
            return Err(GrantError::Status(answer.status().as_u16()));
        }
        read(answer.body(), required)
    }
}

fn read(answer: &[u8], required: &[&'static str]) -> Result<String, GrantError> {
    let said: Map<String, Value> = serde_json::from_slice(answer).map_err(|_| GrantError::Garbage)?;
    if said.get("error").is_some_and(|error| !error.is_null()) {
        return Err(GrantError::Refused);
    }
    let member = |name: &'static str| {
        let text = said.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.ok_or(GrantError::Missing(name))
    };
    for name in required {
        member(name)?;
    }
    member("access_token").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_trap_24_a_success_that_says_error_is_none_and_is_not_repeated() {
        let good = r#"{"access_token":"t","token_type":"Bearer","issued_token_type":"x","expires_in":"60"}"#;
        let required = ["token_type", "issued_token_type"];
        assert_eq!(read(good.as_bytes(), &required).unwrap(), "t");
        for (answer, told) in [
            (r#"{"access_token":"t","token_type":"Bearer","issued_token_type":"x","error":"hunter2"}"#, "refuses"),
            (r#"{"token_type":"Bearer","issued_token_type":"x"}"#, "no access_token"),
            (r#"{"access_token":"","token_type":"Bearer","issued_token_type":"x"}"#, "no access_token"),
            (r#"{"access_token":"t","issued_token_type":"x"}"#, "no token_type"),
            (r#"{"access_token":"t","token_type":"Bearer"}"#, "no issued_token_type"),
            ("hunter2", "no JSON object"),
            ("[]", "no JSON object"),
        ] {
            let said = read(answer.as_bytes(), &required).unwrap_err().to_string();
            assert!(said.contains(told) && !said.contains("hunter2"), "{answer}: {said}");
        }
    }
}
