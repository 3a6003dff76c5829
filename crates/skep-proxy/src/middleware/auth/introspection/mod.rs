//! Tokens that only their issuer understands, and how it is asked about them: RFC 7662, and two that do it in their own way.
//!
//! What an endpoint says when it refuses is not told to callers.

mod known;
mod pace;
#[cfg(test)]
pub(super) mod tests;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode, Uri};
use serde_json::{Map, Value, json};
use url::Url;

use self::known::Known;
use self::pace::Pace;
use super::issuer::Endpoint;
use super::token::{Expected, TokenError};
use crate::fetch::without_query;
use crate::lapses::Lapses;
use crate::middleware::ambiguity::read_once;
use crate::middleware::client_credentials::basic;

/// Bytes of an answer about a token.
const LARGEST: usize = 64 << 10;
/// What callers are told when there is no answer.
const FAILED: &str = "failed to introspect opaque token";
/// Google's endpoint.
pub(super) const GOOGLE: &str = "https://oauth2.googleapis.com/tokeninfo";

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Google,
    GitHub,
    Standard,
}

/// The endpoint that knows tokens.
pub(super) struct Introspection {
    endpoint: Endpoint,
    address: Uri,
    dialect: Dialect,
    /// Name and password of ours at the endpoint, if we have them.
    credentials: Option<HeaderValue>,
    /// How fast it is asked: anybody can come with any word, and GitHub counts the questions of all of our callers as ours.
    pace: Pace,
    known: Known,
    /// How often it could not be asked.
    lapses: Lapses,
}

impl std::fmt::Debug for Introspection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Introspection").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl Introspection {
    /// Nothing when the address is none.
    pub(super) fn new(mut endpoint: Endpoint, address: &str, client: &str, secret: &str) -> Option<Self> {
        let dialect = match Url::parse(address) {
            _ if address == GOOGLE => Dialect::Google,
            Ok(url) if is_github(&url) => Dialect::GitHub,
            _ => Dialect::Standard,
        };
        if dialect != Dialect::Standard {
            // It is a token for the issuer, and these two are somebody else.
            endpoint.token_file = None;
        }
        let credentials = basic(client, secret);
        Some(Self {
            endpoint,
            address: address.parse().ok()?,
            dialect,
            credentials,
            pace: Pace::default(),
            known: Known::default(),
            lapses: Lapses::default(),
        })
    }

    /// What the issuer says about a token, if that is what it has to say.
    pub(super) async fn claims(
        &self,
        token: &str,
        expected: &Expected,
        now: f64,
    ) -> Result<Map<String, Value>, TokenError> {
        if self.dialect == Dialect::GitHub || !self.known.has(token) {
            let too_many = TokenError::Unknown("failed to introspect opaque token: too many requests");
            self.pace.turn().await.ok_or(too_many)?;
        }
        let claims = self.checked(token, expected, now).await;
        match &claims {
            Ok(_) => self.known.note(token, true),
            // An endpoint that cannot be asked says nothing about the token.
            Err(TokenError::Unknown(_)) => {}
            Err(_) => self.known.note(token, false),
        }
        claims
    }

    async fn checked(&self, token: &str, expected: &Expected, now: f64) -> Result<Map<String, Value>, TokenError> {
        let claims = match self.dialect {
            Dialect::Google => self.ask_google(token, now).await?,
            Dialect::GitHub => self.ask_github(token).await?,
            Dialect::Standard => self.ask(token).await?,
        };
        expected.check(&claims)?;
        // GitHub does not say until when; it has just said that the token is good now.
        match claims.get("exp").and_then(Value::as_f64) {
            None if self.dialect == Dialect::GitHub => {}
            None => return Err(TokenError::NoExpiry),
            Some(end) if now > end => return Err(TokenError::Expired),
            Some(_) => {}
        }
        Ok(claims)
    }

    async fn ask(&self, token: &str) -> Result<Map<String, Value>, TokenError> {
        let form: String = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let post = Request::post(&self.address)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        let mut claims = self.send(self.with_credentials(post).body(form.into())).await?;
        if claims.remove("active") != Some(Value::Bool(true)) {
            return Err(TokenError::Inactive);
        }
        for name in ["sub", "iss", "scope", "aud"] {
            if let Some(Value::String(text)) = claims.get_mut(name) {
                *text = text.trim().to_owned();
            }
        }
        Ok(claims)
    }

    async fn ask_google(&self, token: &str, now: f64) -> Result<Map<String, Value>, TokenError> {
        let query: String =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("access_token", token).finish();
        let get = Request::get(format!("{}?{query}", self.address)).header(ACCEPT, "application/json");
        let said = self.send(get.body(Bytes::new())).await?;
        let end = said.get("exp").and_then(Value::as_str).and_then(|end| end.parse::<u32>().ok());
        let end = end.filter(|end| f64::from(*end) > now).ok_or(TokenError::Expired)?;
        let kept = ["sub", "aud", "scope", "azp", "email", "email_verified", "expires_in"];
        let mut claims: Map<String, Value> =
            said.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect();
        claims.insert("iss".to_owned(), json!("https://accounts.google.com"));
        claims.insert("exp".to_owned(), json!(end));
        claims.insert("active".to_owned(), json!(true));
        Ok(claims)
    }

    async fn ask_github(&self, token: &str) -> Result<Map<String, Value>, TokenError> {
        let post = Request::post(&self.address)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/vnd.github+json");
        let body = json!({"access_token": token}).to_string();
        let said = Value::Object(self.send(self.with_credentials(post).body(body.into())).await?);
        let user = &said["user"];
        let subject = user["id"].as_u64().ok_or(TokenError::Inactive)?.to_string();
        let scopes: Vec<&str> = said["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let claims = json!({
            "iss": "https://github.com",
            "aud": "https://github.com",
            "sub": subject,
            "preferred_username": user["login"],
            "login": user["login"],
            "email": user["email"],
            "name": user["name"],
            "scopes": scopes,
            "scope": scopes.join(" "),
            "user_type": user["type"],
            "site_admin": user["site_admin"],
            "app_name": said["app"]["name"],
            "iat": said["created_at"],
            "active": true,
        });
        let Value::Object(claims) = claims else { return Err(TokenError::Inactive) };
        Ok(claims.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    fn with_credentials(&self, request: http::request::Builder) -> http::request::Builder {
        match &self.credentials {
            Some(credentials) => request.header(AUTHORIZATION, credentials),
            None => request,
        }
    }

    /// The object that an endpoint answers with.
    async fn send(&self, request: http::Result<Request<Bytes>>) -> Result<Map<String, Value>, TokenError> {
        let failed = TokenError::Unknown(FAILED);
        let request = request.map_err(|_| failed.clone())?;
        let answer = self.endpoint.send(request, LARGEST).await.map_err(|error| {
            self.fail(&error.with_hint());
            failed.clone()
        })?;
        let said = match answer.status() {
            StatusCode::OK => read_once(answer.body()).ok_or_else(|| {
                self.fail("its answer is no object in JSON, or says something twice");
                failed
            }),
            StatusCode::NOT_FOUND if self.dialect == Dialect::GitHub => Err(TokenError::Inactive),
            status => {
                let wait = answer.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
                let wait = wait.map(|wait| format!(", to be asked again after {wait:?}")).unwrap_or_default();
                self.fail(&format!("it refuses with the status {}{wait}", status.as_u16()));
                return Err(failed);
            }
        };
        if !matches!(said, Err(TokenError::Unknown(_))) && self.lapses.is_over() {
            tracing::info!(endpoint = without_query(&self.address), "the introspection endpoint says something again");
        }
        said
    }

    /// Tells that it says nothing about tokens, now and then: anybody can make us ask.
    fn fail(&self, cause: &str) {
        if let Some(times) = self.lapses.failed() {
            let endpoint = without_query(&self.address);
            tracing::warn!(endpoint, cause, times, "the introspection endpoint says nothing about tokens");
        }
    }
}

fn is_github(url: &Url) -> bool {
    let path = url.path();
    url.scheme() == "https"
        && url.host_str() == Some("api.github.com")
        && path.contains("/applications/")
        && path.ends_with("/token")
}
