//! Acts on behalf of the caller: takes the caller's token for one that says who acts for whom (RFC 8693 with
//! `actor_token`). Whoever cannot be acted for is refused: nothing reaches the server with the caller's own token.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::AUTHORIZATION;
use tokio::time::Instant;

use super::auth::bearer;
use super::exchange::Exchange;
use super::grants::kept::MARGIN;
use super::grants::{
    ACCESS_TOKEN, Bearer, EndpointError, Given, GrantError, Kept, Key, TOKEN_EXCHANGE, TokenEndpoint, form, place,
};
use super::identity::Identity;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;

/// How tokens are asked for. What is empty is not said.
#[derive(Clone, Default)]
pub struct OnBehalfOfSettings {
    /// Where.
    pub token_url: String,
    /// Who we are there, and who acts. Nobody is said to act when it is empty.
    pub client_id: String,
    pub client_secret: String,
    /// Whom the token is to be meant for.
    pub audience: String,
    /// What it is to allow.
    pub scopes: Vec<String>,
    /// How long before its end a token is not used any more.
    pub margin: Option<Duration>,
}

impl std::fmt::Debug for OnBehalfOfSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OnBehalfOfSettings").field("token_url", &self.token_url).finish_non_exhaustive()
    }
}

/// A token of ours that was given so lately is not to blame when an exchange is refused.
const FRESH: Duration = Duration::from_secs(1);

/// What we prove to be the actor with; nothing when the endpoint cannot tell who we are.
#[derive(Clone)]
struct Actor {
    token: String,
    given: Instant,
}

/// Acts on behalf of callers.
#[derive(Debug)]
pub struct OnBehalfOf {
    endpoint: TokenEndpoint,
    actor: Kept<Actor>,
    kept: Kept<Bearer>,
    audience: String,
    scope: String,
}

impl OnBehalfOf {
    /// Checks the settings. Nobody is asked yet.
    pub fn new(settings: &OnBehalfOfSettings) -> Result<Self, EndpointError> {
        let endpoint = TokenEndpoint::new(&settings.token_url, &settings.client_id, &settings.client_secret)?;
        let margin = settings.margin.unwrap_or(MARGIN);
        Ok(Self {
            endpoint,
            actor: Kept::new(margin),
            kept: Kept::new(margin),
            audience: settings.audience.clone(),
            scope: settings.scopes.join(" "),
        })
    }

    /// The token for a caller, as a header, and what it is kept under.
    async fn acting(&self, identity: &Identity, token: &str) -> Result<(Key, Bearer), GrantError> {
        let key = Key::of(identity, &[token, &self.audience, &self.scope]);
        let ask = || {
            let question = Question {
                endpoint: self.endpoint.clone(),
                token: token.to_owned(),
                audience: self.audience.clone(),
                scope: self.scope.clone(),
            };
            let actor = self.actor.clone();
            async move {
                let asked = question.ask(&actor).await;
                asked.inspect_err(|error| tracing::warn!(%error, "nobody can be acted for"))
            }
        };
        Ok((key, self.kept.get(key, ask).await?))
    }
}

/// What is asked for a caller.
struct Question {
    endpoint: TokenEndpoint,
    token: String,
    audience: String,
    scope: String,
}

impl Question {
    /// Asks once more as somebody else when the endpoint refuses: it may have taken back the token that says who we are.
    async fn ask(&self, kept: &Kept<Actor>) -> Result<Given<Bearer>, GrantError> {
        let actor = actor(&self.endpoint, kept).await?;
        let answer = self.ask_as(&actor.token).await;
        let is_refused = matches!(answer, Err(GrantError::Status(_) | GrantError::Refused));
        if !is_refused || actor.token.is_empty() || actor.given.elapsed() < FRESH {
            return answer;
        }
        kept.forget_this(Key::ours(), |kept| kept.token == actor.token);
        let renewed = self::actor(&self.endpoint, kept).await?;
        self.ask_as(&renewed.token).await
    }

    async fn ask_as(&self, actor: &str) -> Result<Given<Bearer>, GrantError> {
        let question = form(&[
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token", &self.token),
            ("subject_token_type", ACCESS_TOKEN),
            ("actor_token", actor),
            ("actor_token_type", if actor.is_empty() { "" } else { ACCESS_TOKEN }),
            ("requested_token_type", ACCESS_TOKEN),
            ("audience", &self.audience),
            ("scope", &self.scope),
        ]);
        self.endpoint.ask(question, &["token_type", "issued_token_type"]).await?.bearer()
    }
}

/// Who we are there, as far as the endpoint can tell.
async fn actor(endpoint: &TokenEndpoint, kept: &Kept<Actor>) -> Result<Actor, GrantError> {
    if !endpoint.has_credentials() {
        return Ok(Actor { token: String::new(), given: Instant::now() });
    }
    let endpoint = endpoint.clone();
    let ask = || async move {
        let issued = endpoint.ask(form(&[("grant_type", "client_credentials")]), &[]).await?;
        let lifetime = issued.lifetime();
        Ok(Given { lifetime, value: Actor { token: issued.token, given: Instant::now() } })
    };
    kept.get(Key::ours(), ask).await
}

impl Layer for OnBehalfOf {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let Some(identity) = exchange.notes().identity() else {
                return Refusal::Unauthenticated.answer(None);
            };
            // What the caller has proved itself with, whatever another step has put into its place.
            let proof = Some(identity.expose_token()).filter(|token| !token.is_empty());
            let Some(token) = proof.or_else(|| bearer(&exchange.parts.headers)) else {
                return Refusal::NoBearer.answer(None);
            };
            let (key, value) = match self.acting(identity, token).await {
                Ok(given) => given,
                Err(error) => return Refusal::from(error).answer(None),
            };
            place(&mut exchange.parts, &AUTHORIZATION, value);
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
