//! Servers of AWS: the caller's token is good for the credentials of a role, and what goes to the server is signed with
//! them. A request that cannot be signed is refused; none reaches the server with the caller's own token.
//!
//! Here it is decided with which credentials a request is signed. It is signed where it is sent, because what a transport
//! changes on the way is signed, too.

mod matcher;
mod roles;
mod service;
mod signing;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::AUTHORIZATION;
use serde_json::Value;

use self::roles::Roles;
pub use self::roles::{RoleMapping, RoleTest, RolesError};
use self::service::Assumption;
pub(crate) use self::signing::Signer;
use self::signing::{Credentials, Scope};
use super::auth::bearer;
use super::exchange::Exchange;
use super::good_until;
use super::grants::kept::MARGIN;
use super::grants::{EndpointError, Kept, Key, TokenEndpoint};
use super::identity::Identity;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;
use crate::transparent::strip_headers;

/// A larger body is not signed.
const LARGEST_BODY: usize = 10 << 20;
/// How long credentials may be good for, in seconds.
const DURATIONS: std::ops::RangeInclusive<i64> = 900..=43_200;
/// How many characters the name of a session has.
const NAME_LENGTHS: std::ops::RangeInclusive<usize> = 2..=64;

/// How callers get credentials, and for what.
#[derive(Debug, Clone)]
pub struct AwsStsSettings {
    /// The region, whose service is asked and whose server is called.
    pub region: String,
    /// What the server is to AWS.
    pub service: String,
    /// The role of callers that no mapping fits; none when empty.
    pub fallback_role: String,
    pub role_mappings: Vec<RoleMapping>,
    /// The claim that mappings by value look into.
    pub role_claim: String,
    /// The claim that names the session.
    pub session_name_claim: String,
    /// In seconds.
    pub session_duration: i64,
    /// Another address than that of the region's own service; none when empty.
    pub endpoint: String,
}

/// Why callers cannot get credentials.
#[derive(Debug, thiserror::Error)]
pub enum AwsStsError {
    /// It is no region.
    #[error("region {0:?} must look like eu-central-1")]
    Region(String),
    /// It is no service.
    #[error("service {0:?} must consist of lower case letters, digits and hyphens")]
    Service(String),
    /// Sessions are not that long, or short.
    #[error("session_duration {0} must be from 900 to 43200 seconds")]
    Duration(i64),
    /// A role is none.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// The service cannot be asked.
    #[error("the address of STS: {0}")]
    Endpoint(#[from] EndpointError),
}

/// Gets credentials for callers.
#[derive(Debug)]
pub struct AwsSts {
    endpoint: TokenEndpoint,
    kept: Kept<Arc<Credentials>>,
    roles: Arc<Roles>,
    session_name_claim: String,
    seconds: String,
    scope: Scope,
}

impl AwsSts {
    /// Checks the settings. Nobody is asked yet.
    pub fn new(settings: AwsStsSettings) -> Result<Self, AwsStsError> {
        let is_label = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !text.is_empty() && text.bytes().all(is_plain)
        };
        if !is_label(&settings.region) || !settings.region.contains('-') {
            return Err(AwsStsError::Region(settings.region));
        }
        if !is_label(&settings.service) {
            return Err(AwsStsError::Service(settings.service));
        }
        if !DURATIONS.contains(&settings.session_duration) {
            return Err(AwsStsError::Duration(settings.session_duration));
        }
        Ok(Self {
            endpoint: service::endpoint(&settings.region, &settings.endpoint)?,
            kept: Kept::new(MARGIN),
            roles: Arc::new(Roles::new(settings.role_claim, settings.role_mappings, settings.fallback_role)?),
            session_name_claim: settings.session_name_claim,
            seconds: settings.session_duration.to_string(),
            scope: Scope { region: settings.region.into(), service: settings.service.into() },
        })
    }

    /// Credentials for whoever sends a request, and what they are kept under.
    async fn credentials(&self, exchange: &Exchange<'_>) -> Result<(Key, Arc<Credentials>), Refusal> {
        let identity = exchange.notes().identity().filter(|identity| !identity.claims.is_empty());
        let identity = identity.ok_or(Refusal::Unauthenticated)?;
        let role = self.roles.of(identity).await.ok_or(Refusal::NoRole)?;
        let token = bearer(&exchange.parts.headers).ok_or(Refusal::NoBearer)?;
        let session = self.session_name(identity)?;
        let question = Assumption { role: &role, session, token, seconds: &self.seconds }.question();
        let key = Key::of(identity, &[&question]);
        let ask = || {
            let endpoint = self.endpoint.clone();
            async move {
                let given = service::ask(&endpoint, question).await;
                given.inspect_err(|error| tracing::warn!(%error, role = &*role, "AWS gives no credentials"))
            }
        };
        let credentials = self.kept.get(key, ask).await;
        Ok((key, credentials.map_err(|_| Refusal::NoAwsCredentials)?))
    }

    /// What the session of a caller is called in the records of AWS. A name that AWS would not take is not mended: two
    /// callers could look alike then.
    fn session_name<'a>(&self, identity: &'a Identity) -> Result<&'a str, Refusal> {
        let name = identity.claims.get(&self.session_name_claim).and_then(Value::as_str);
        let name = name.ok_or(Refusal::NoSessionName)?;
        let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
        let is_good = NAME_LENGTHS.contains(&name.len()) && name.bytes().all(is_taken);
        if is_good { Ok(name) } else { Err(Refusal::InvalidSessionName) }
    }
}

impl Layer for AwsSts {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let (key, credentials) = match self.credentials(&exchange).await {
                Ok(given) => given,
                Err(refusal) => return refusal.answer(None),
            };
            match exchange.length().await {
                Ok(length) if length <= LARGEST_BODY => {}
                Ok(_) => return Refusal::NotSigned.answer(None),
                Err(answer) => return answer,
            }
            let parts = &mut exchange.parts;
            // A client could call signed headers a matter between neighbours, and have them removed later on.
            strip_headers(&mut parts.headers);
            parts.headers.remove(AUTHORIZATION);
            good_until::note(&mut parts.extensions, credentials.until);
            parts.extensions.insert(Signer { credentials, scope: self.scope.clone(), given_for: key });
            let answer = next.pass(exchange).await;
            if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                // The server does not take them any more, or never did.
                self.kept.forget(key);
            }
            answer
        }
        .boxed()
    }
}
