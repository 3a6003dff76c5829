//! Takes the caller's token for one that is meant for the server (RFC 8693), so that the server never gets a token that
//! was issued for us.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderName, StatusCode};

use super::auth::bearer;
use super::exchange::Exchange;
use super::forward_headers::{ForwardError, for_credential};
use super::grants::kept::MARGIN;
use super::grants::{
    ACCESS_TOKEN, Bearer, EndpointError, GrantError, Kept, Key, TOKEN_EXCHANGE, TokenEndpoint, form, place,
};
use super::identity::Identity;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;

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
    /// The header cannot get a token.
    #[error("external_token_header_name: {0}")]
    Header(#[from] ForwardError),
}

/// Exchanges tokens.
#[derive(Debug)]
pub struct TokenExchange {
    endpoint: TokenEndpoint,
    kept: Kept<Bearer>,
    audience: String,
    scope: String,
    subject_token_type: String,
    header: HeaderName,
}

impl TokenExchange {
    /// Checks the settings. Nobody is asked yet.
    pub fn new(settings: TokenExchangeSettings) -> Result<Self, TokenExchangeError> {
        let endpoint = TokenEndpoint::new(&settings.token_url, &settings.client_id, &settings.client_secret)?;
        let header = match settings.header {
            None => AUTHORIZATION,
            Some(name) => for_credential(&name)?,
        };
        let kind = Some(settings.subject_token_type).filter(|kind| !kind.is_empty());
        Ok(Self {
            endpoint,
            kept: Kept::new(MARGIN),
            audience: settings.audience,
            scope: settings.scopes.join(" "),
            subject_token_type: kind.unwrap_or_else(|| ACCESS_TOKEN.to_owned()),
            header,
        })
    }

    /// The question for the token of a caller, which is all of it that differs from one question to the next.
    fn question(&self, token: &str) -> String {
        form(&[
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token_type", &self.subject_token_type),
            ("requested_token_type", ACCESS_TOKEN),
            ("audience", &self.audience),
            ("scope", &self.scope),
            ("subject_token", token),
        ])
    }

    /// The new token, as a header, and what it is kept under.
    async fn exchanged(&self, identity: &Identity, token: &str) -> Result<(Key, Bearer), GrantError> {
        let key = Key::of(identity, &[token]);
        let ask = || {
            let (endpoint, question) = (self.endpoint.clone(), self.question(token));
            async move {
                let issued = endpoint.ask(question, &["token_type", "issued_token_type"]).await;
                let given = issued.and_then(|issued| issued.bearer());
                given.inspect_err(|error| tracing::warn!(%error, "a token cannot be exchanged"))
            }
        };
        Ok((key, self.kept.get(key, ask).await?))
    }
}

impl Layer for TokenExchange {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let asked = match (exchange.notes().identity(), bearer(&exchange.parts.headers)) {
                (Some(identity), Some(token)) => self.exchanged(identity, token).await,
                _ => return next.pass(exchange).await,
            };
            let (key, value) = match asked {
                Ok(given) => given,
                Err(error) => return Refusal::from(error).answer(None),
            };
            place(&mut exchange.parts, &self.header, value);
            let answer = next.pass(exchange).await;
            if answer.status() == StatusCode::UNAUTHORIZED {
                // The server does not take it any more, whatever it was given for.
                self.kept.forget(key);
            }
            answer
        }
        .boxed()
    }
}
