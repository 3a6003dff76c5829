//! Takes the caller's token for one that is meant for the server (RFC 8693), so that the server never gets a token that
//! was issued for us.

mod endpoint;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

pub use self::endpoint::EndpointError;
use self::endpoint::TokenEndpoint;
use super::auth::bearer;
use super::exchange::Exchange;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;
use crate::transparent::strip_headers;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The type of tokens that are given and taken, unless something else is said.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// How tokens are exchanged. What is empty is not said.
#[derive(Clone, Default)]
pub struct TokenExchangeSettings {
    /// Where.
    pub token_url: String,
    /// Who we are there.
    pub client_id: String,
    pub client_secret: String,
    /// Whom the new token is to be meant for.
    pub audience: String,
    /// What it is to allow.
    pub scopes: Vec<String>,
    /// What the caller's token is, as a URN.
    pub subject_token_type: String,
    /// The header that gets the new token, instead of the caller's `Authorization`.
    pub header: Option<String>,
}

impl std::fmt::Debug for TokenExchangeSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenExchangeSettings").field("token_url", &self.token_url).finish_non_exhaustive()
    }
}

/// Why tokens cannot be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum TokenExchangeError {
    /// The endpoint is none that can be asked.
    #[error("token_url: {0}")]
    Endpoint(#[from] EndpointError),
    /// The name of the header is none.
    #[error("external_token_header_name {0:?} is no name of a header")]
    Header(String),
}

/// Exchanges tokens.
#[derive(Debug)]
pub struct TokenExchange {
    endpoint: TokenEndpoint,
    /// What is the same for everybody.
    form: Vec<(&'static str, String)>,
    header: HeaderName,
}

impl TokenExchange {
    /// Checks the settings. Nobody is asked yet.
    pub fn new(settings: TokenExchangeSettings) -> Result<Self, TokenExchangeError> {
        let endpoint = TokenEndpoint::new(&settings.token_url, &settings.client_id, &settings.client_secret)?;
        let header = match settings.header {
            None => AUTHORIZATION,
            Some(name) => name.parse().map_err(|_| TokenExchangeError::Header(name))?,
        };
        let kind = Some(settings.subject_token_type).filter(|kind| !kind.is_empty());
        let said = [("audience", settings.audience), ("scope", settings.scopes.join(" "))];
        let mut form = vec![
            ("grant_type", GRANT.to_owned()),
            ("subject_token_type", kind.unwrap_or_else(|| ACCESS_TOKEN.to_owned())),
            ("requested_token_type", ACCESS_TOKEN.to_owned()),
        ];
        form.extend(said.into_iter().filter(|(_, value)| !value.is_empty()));
        Ok(Self { endpoint, form, header })
    }

    /// The new token, as a header.
    async fn exchanged(&self, token: &str) -> Result<HeaderValue, Refusal> {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&self.form)
            .append_pair("subject_token", token)
            .finish();
        let issued = self.endpoint.ask(form, &["token_type", "issued_token_type"]).await.map_err(|error| {
            tracing::warn!(%error, "a token cannot be exchanged");
            Refusal::TokenNotExchanged
        })?;
        let mut value = HeaderValue::from_str(&format!("Bearer {issued}")).map_err(|_| {
            tracing::warn!("a token that was given for another one is no text that a header can hold");
            Refusal::TokenNotPlaced
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl Layer for TokenExchange {
    fn pass<'a>(&'a self, mut exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let token = bearer(&exchange.parts.headers).filter(|_| exchange.notes().identity().is_some());
            let Some(token) = token.map(str::to_owned) else { return next.pass(exchange).await };
            let value = match self.exchanged(&token).await {
                Ok(value) => value,
                Err(refusal) => return refusal.answer(None),
            };
            let headers = &mut exchange.parts.headers;
            // A client could call the header a matter between neighbours, and have it removed later on.
            strip_headers(headers);
            headers.remove(AUTHORIZATION);
            headers.insert(&self.header, value);
            next.pass(exchange).await
        }
        .boxed()
    }
}
