//! Callers who have to prove who they are, with a token of an issuer that is trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};

use super::challenge::{Challenge, Unproven, metadata_url};
use super::introspection::{GOOGLE, Introspection};
use super::issuer::Endpoint;
use super::keys::Keys;
use super::proven::Proven;
use super::resource::ProtectedResource;
use super::token::{self, Expected, SignedToken, TokenError};
use crate::answer::Answer;
use crate::fetch::{FetchError, FetchPolicy, Fetcher, FilesError, TlsFiles, without_user};
use crate::middleware::exchange::Exchange;
use crate::middleware::identity::Identity;
use crate::middleware::layer::{Layer, Next};

/// What tokens have to be like, and whom to ask about them. What is empty is not asked for.
#[derive(Clone, Default)]
pub struct OidcSettings {
    /// Who has to have issued a token; also where discovery begins.
    pub issuer: String,
    /// Whom a token has to be meant for.
    pub audience: String,
    /// Where the keys of the issuer are; discovery finds them when it is empty.
    pub key_set_url: String,
    /// Where to ask about tokens that only their issuer understands.
    pub introspection_url: String,
    /// Who we are there.
    pub client_id: String,
    pub client_secret: String,
    /// A file with the authorities to trust instead of the machine's.
    pub authorities_file: Option<PathBuf>,
    /// A file with a token of ours for the issuer.
    pub token_file: Option<PathBuf>,
    /// Whether the issuer may be at an address that is not for everybody.
    pub allows_private: bool,
    /// Whether the issuer may be asked without TLS.
    pub allows_http: bool,
    /// What the resource calls itself.
    pub resource_url: String,
    /// The scopes that clients should ask for.
    pub scopes: Vec<String>,
}

impl fmt::Debug for OidcSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OidcSettings").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why callers cannot be asked for tokens.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// Nobody is there whose tokens could be good.
    #[error("there is neither an Issuer nor a JWKSURL")]
    NoIssuer,
    /// The file with our token cannot be read.
    #[error("AuthTokenFile {0} cannot be read: {1}")]
    Token(String, io::Error),
    /// The file is there, and nothing is in it.
    #[error("AuthTokenFile {0} is empty")]
    NoToken(String),
    /// The authorities are none.
    #[error("CACertPath: {0}")]
    Authorities(#[from] FilesError),
    /// Everybody's tokens would be good.
    #[error("IntrospectionURL is that of Google, whose tokens are for anybody, and there is no Audience")]
    NoAudience,
    /// It is no address.
    #[error("{0} is no URL")]
    Address(&'static str),
    /// It is where nobody may be asked.
    #[error("{member}: {cause}{hint}")]
    Closed {
        /// Which one.
        member: &'static str,
        /// Why.
        cause: FetchError,
        /// What would allow it, if anything would.
        hint: String,
    },
}

type Claims = serde_json::Map<String, serde_json::Value>;

/// Asks callers for tokens.
#[derive(Debug)]
pub struct Oidc {
    expected: Expected,
    keys: Keys,
    proven: Proven,
    introspection: Option<Introspection>,
    pub(super) challenge: Challenge,
    resource: ProtectedResource,
}

impl Oidc {
    /// Checks the settings. Nobody is asked anything yet, so that a proxy can start before its issuer.
    pub fn new(settings: &OidcSettings) -> Result<Self, OidcError> {
        Self::asking(settings, Fetcher::new)
    }

    /// The same, by somebody who asks in another way.
    pub(super) fn asking(
        settings: &OidcSettings,
        fetcher: impl FnOnce(FetchPolicy) -> Result<Fetcher, FilesError>,
    ) -> Result<Self, OidcError> {
        if settings.issuer.is_empty() && settings.key_set_url.is_empty() {
            return Err(OidcError::NoIssuer);
        }
        if settings.introspection_url == GOOGLE && settings.audience.trim().is_empty() {
            return Err(OidcError::NoAudience);
        }
        if let Some(file) = &settings.token_file
            && read(file)?.trim_ascii().is_empty()
        {
            return Err(OidcError::NoToken(file.display().to_string()));
        }
        if settings.allows_http {
            let issuer = without_user(&settings.issuer);
            tracing::warn!(%issuer, "the issuer may be asked without TLS, which protects nothing");
        }
        let policy = FetchPolicy {
            allows_private: settings.allows_private,
            allows_http: settings.allows_http,
            tls: TlsFiles { authorities: settings.authorities_file.clone(), ..TlsFiles::default() },
            ..FetchPolicy::default()
        };
        let place = match settings.key_set_url.as_str() {
            "" => None,
            place => Some(askable("JWKSURL", place, &policy)?),
        };
        if place.is_none() {
            askable("Issuer", &settings.issuer, &policy)?;
        }
        if !settings.introspection_url.is_empty() {
            askable("IntrospectionURL", &settings.introspection_url, &policy)?;
        }
        let resource_metadata = match settings.resource_url.as_str() {
            "" => String::new(),
            resource => metadata_url(resource).ok_or(OidcError::Address("ResourceURL"))?,
        };
        let endpoint = Endpoint { fetcher: fetcher(policy)?, token_file: settings.token_file.clone() };
        let (client, secret) = (&settings.client_id, &settings.client_secret);
        let introspection = match settings.introspection_url.as_str() {
            "" => None,
            address => Some(
                Introspection::new(endpoint.clone(), address, client, secret)
                    .ok_or(OidcError::Address("IntrospectionURL"))?,
            ),
        };
        Ok(Self {
            expected: Expected { issuer: settings.issuer.clone(), audience: settings.audience.clone() },
            keys: Keys::new(endpoint, &settings.issuer, place),
            proven: Proven::default(),
            introspection,
            challenge: Challenge {
                realm: settings.issuer.clone(),
                resource_metadata,
                scope: settings.scopes.join(" "),
            },
            resource: ProtectedResource::new(&settings.resource_url, &settings.issuer, &settings.scopes),
        })
    }

    pub(crate) fn resource(&self) -> &ProtectedResource {
        &self.resource
    }

    /// Whom a token proves its bearer to be, if it proves anything.
    pub async fn prove(&self, token: &str) -> Option<Arc<Identity>> {
        self.identify(token).await.ok()
    }

    /// What is known of a token that was here before.
    fn remembered(&self, token: &str) -> Option<Result<Arc<Identity>, Unproven>> {
        let known = self.keys.current().and_then(|keys| self.proven.find(token, keys, token::now()))?;
        Some(known.map_err(Unproven::Token))
    }

    async fn identify(&self, token: &str) -> Result<Arc<Identity>, Unproven> {
        if let Some(known) = self.remembered(token) {
            return known;
        }
        let (claims, keys) = match SignedToken::read(token) {
            Ok(signed) => self.check(signed).await.map(|(claims, keys)| (claims, Some(keys))),
            // It may be of the other kind.
            Err(TokenError::Malformed) => self.introspect(token).await.map(|claims| (claims, None)),
            Err(error) => Err(error),
        }
        .map_err(Unproven::Token)?;
        let identity = Identity::from_claims(claims, token).map(Arc::new).ok_or(Unproven::Nobody)?;
        if let Some(keys) = keys {
            self.proven.remember(token, keys, &identity);
        }
        Ok(identity)
    }

    /// The claims of a token that is good, and the number of the keys that say so.
    async fn check(&self, token: SignedToken<'_>) -> Result<(Claims, u64), TokenError> {
        let keys = self.keys.verify(&token).await?;
        token::check_times(&token.claims, token::now())?;
        self.expected.check(&token.claims)?;
        Ok((token.claims, keys))
    }

    async fn introspect(&self, token: &str) -> Result<Claims, TokenError> {
        let Some(introspection) = &self.introspection else {
            let told = "failed to introspect opaque token: no introspection endpoint available";
            return Err(TokenError::Unknown(told));
        };
        introspection.claims(token, &self.expected, token::now()).await
    }
}

/// An address that may be asked, as far as the address itself tells.
fn askable(member: &'static str, address: &str, policy: &FetchPolicy) -> Result<Uri, OidcError> {
    let address: Uri = address.parse().map_err(|_| OidcError::Address(member))?;
    policy.check(&address).map_err(|cause| {
        let hint = match policy.lacking(&address, "InsecureAllowHTTP", "AllowPrivateIP").join(" and ") {
            switches if switches.is_empty() => String::new(),
            switches => format!("; set {switches} to allow it"),
        };
        OidcError::Closed { member, cause, hint }
    })?;
    Ok(address)
}

fn read(file: &Path) -> Result<Vec<u8>, OidcError> {
    std::fs::read(file).map_err(|error| OidcError::Token(file.display().to_string(), error))
}

/// The token of a request. Two of them are refused: whoever comes after us might believe the other one.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Unproven> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Unproven::NoHeader)?;
    if values.next().is_some() {
        return Err(Unproven::WrongScheme);
    }
    let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer ")).ok_or(Unproven::WrongScheme)?;
    if token.trim().is_empty() { Err(Unproven::NoToken) } else { Ok(token) }
}

impl Layer for Oidc {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        // Whoever was here before needs no room for what it takes to ask others.
        if let Ok(token) = bearer(&exchange.parts.headers)
            && let Some(Ok(identity)) = self.remembered(token)
        {
            exchange.notes().identify(identity);
            return next.pass(exchange);
        }
        async move {
            let identified = match bearer(&exchange.parts.headers) {
                Ok(token) => self.identify(token).await,
                Err(unproven) => Err(unproven),
            };
            match identified {
                Ok(identity) => {
                    exchange.notes().identify(identity);
                    next.pass(exchange).await
                }
                Err(unproven) => {
                    tracing::debug!(?unproven, "a request proves nothing");
                    self.challenge.answer(&unproven)
                }
            }
        }
        .boxed()
    }
}
