//! An endpoint that gives tokens, for other tokens as a rule.

use std::fmt;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Uri};
use serde_json::{Map, Value};

use super::kept::Given;
use crate::fetch::{FetchError, FetchPolicy, Fetcher, FilesError, without_user};
use crate::middleware::client_credentials::basic;

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer lifetimes count as this one, in seconds.
const LONGEST_LIFETIME: u64 = 2_147_483_647;

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

/// Why there is no credential.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum GrantError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the endpoint answers with the status {0}")]
    Status(u16),
    #[error("the endpoint refuses")]
    Refused,
    #[error("the answer of the endpoint cannot be read")]
    Garbage,
    #[error("the answer of the endpoint has no {0}")]
    Missing(&'static str),
    #[error("the answer of the endpoint has another {0} than was asked for")]
    Wrong(&'static str),
    #[error("the token that the endpoint gives is no text that a header can hold")]
    Unsendable,
    #[error("it cannot be evaluated in time")]
    Unfinished,
}

/// A token that an endpoint has given.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) token: String,
    /// What it says besides.
    said: Map<String, Value>,
}

/// A token as a server gets it.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    pub(crate) header: HeaderValue,
    /// When it ends, if that is known.
    pub(crate) until: Option<Instant>,
}

/// Tokens are secrets.
impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Issued")
    }
}

/// The endpoint, and who we are there.
#[derive(Clone)]
pub(crate) struct TokenEndpoint {
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
    pub(crate) fn new(url: &str, client: &str, secret: &str) -> Result<Self, EndpointError> {
        let address: Uri = url.parse().map_err(|_| EndpointError::Url(without_user(url).into_owned()))?;
        let is_plain = address.scheme_str() == Some("http");
        if is_plain {
            tracing::warn!(host = address.host(), "credentials are asked for without TLS, which protects nothing");
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

    /// Whether the endpoint can tell who we are.
    pub(crate) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// The token for a form, which has to come with these members.
    pub(crate) async fn ask(&self, form: String, required: &[&'static str]) -> Result<Issued, GrantError> {
        read(&self.post(form, "application/json").await?, required)
    }

    /// What the endpoint answers to a form, in one of these types.
    pub(crate) async fn post(&self, form: String, types: &'static str) -> Result<bytes::Bytes, GrantError> {
        let mut request = Request::new(form.into());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static(types));
        if let Some(credentials) = &self.credentials {
            headers.insert(AUTHORIZATION, credentials.clone());
        }
        let answer = self.fetcher.send(request, LARGEST_ANSWER).await?;
        if !answer.status().is_success() {
            return Err(GrantError::Status(answer.status().as_u16()));
        }
        Ok(answer.into_body())
    }
}

impl Issued {
    /// What is said about it under that name.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.said.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// As a server gets it, for as long as it is good.
    pub(crate) fn bearer(&self) -> Result<Given<Bearer>, GrantError> {
        let header = HeaderValue::from_str(&format!("Bearer {}", self.token));
        let mut header = header.map_err(|_| GrantError::Unsendable)?;
        header.set_sensitive(true);
        let lifetime = self.lifetime();
        Ok(Given { value: Bearer { header, until: lifetime.map(|lifetime| Instant::now() + lifetime) }, lifetime })
    }

    /// How long it is good for; nothing when that is not said.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        let said = self.said.get("expires_in")?;
        let seconds = said.as_u64().or_else(|| said.as_str()?.trim().parse().ok())?;
        Some(Duration::from_secs(seconds.min(LONGEST_LIFETIME))).filter(|lifetime| !lifetime.is_zero())
    }
}

fn read(answer: &[u8], required: &[&'static str]) -> Result<Issued, GrantError> {
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
    Ok(Issued { token: member("access_token")?.to_owned(), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_trap_24_a_success_that_says_error_is_none_and_is_not_repeated() {
        let good = r#"{"access_token":"t","token_type":"Bearer","issued_token_type":"x","expires_in":"60"}"#;
        let required = ["token_type", "issued_token_type"];
        assert_eq!(read(good.as_bytes(), &required).unwrap().token, "t");
        for (answer, told) in [
            (r#"{"access_token":"t","token_type":"Bearer","issued_token_type":"x","error":"hunter2"}"#, "refuses"),
            (r#"{"token_type":"Bearer","issued_token_type":"x"}"#, "no access_token"),
            (r#"{"access_token":"","token_type":"Bearer","issued_token_type":"x"}"#, "no access_token"),
            (r#"{"access_token":"t","issued_token_type":"x"}"#, "no token_type"),
            (r#"{"access_token":"t","token_type":"Bearer"}"#, "no issued_token_type"),
            ("hunter2", "cannot be read"),
            ("[]", "cannot be read"),
        ] {
            let said = read(answer.as_bytes(), &required).unwrap_err().to_string();
            assert!(said.contains(told) && !said.contains("hunter2"), "{answer}: {said}");
        }
    }

    #[test]
    fn auth_trap_24_a_lifetime_is_a_number_in_any_form() {
        for (said, seconds) in [
            ("60", Some(60)),
            (r#""60""#, Some(60)),
            ("99999999999", Some(LONGEST_LIFETIME)),
            ("0", None),
            ("-5", None),
            (r#""soon""#, None),
            ("null", None),
        ] {
            let issued = read(format!(r#"{{"access_token":"t","expires_in":{said}}}"#).as_bytes(), &[]).unwrap();
            assert_eq!(issued.lifetime(), seconds.map(Duration::from_secs), "{said}");
        }
    }

    /// The clock of this test does not wait.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_never_answers_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = TokenEndpoint::new(&url, "", "").unwrap().ask(String::new(), &[]).await;
        assert!(matches!(asked, Err(GrantError::Fetch(_))), "{asked:?}");
    }

    #[test]
    fn a_token_that_is_no_header_is_not_sent_and_others_are_not_told() {
        let issued = |token: &str| Issued { token: token.to_owned(), said: Map::new() }.bearer();
        assert!(matches!(issued("a\nb"), Err(GrantError::Unsendable)));
        assert!(!format!("{:?}", issued("hunter2").unwrap().value).contains("hunter2"));
    }
}
