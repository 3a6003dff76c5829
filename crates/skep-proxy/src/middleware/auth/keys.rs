//! The keys of an issuer, found when they are first needed and kept for a while.
//!
//! One request at a time asks the issuer; the others wait for what it finds, whether that is keys or a failure. A failure
//! is not remembered: whoever comes later asks again. A key that is not there makes us ask at once, but not too often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::header::{ACCEPT, CACHE_CONTROL, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Uri};
use parking_lot::Mutex;
use serde_json::Value;

use super::issuer::{Endpoint, LARGEST};
use super::key_set::KeySet;
use super::token::{SignedToken, TokenError};
use crate::pauses::Pauses;

/// How long keys are kept, whatever the issuer says.
const SHORTEST: Duration = Duration::from_mins(15);
const LONGEST: Duration = Duration::from_hours(30 * 24);
/// How often a key that is not there makes us ask.
const COOL_DOWN: Duration = Duration::from_secs(30);
/// How often discovery is tried for one request, how long to wait in between, and how long one attempt may take.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);

/// What key sets call themselves. Kubernetes has nothing to say to those who do not take the second.
const KEY_SETS: &str = "application/json, application/jwk-set+json";

/// Keys, and when they were fetched.
#[derive(Debug)]
struct Fetched {
    keys: KeySet,
    at: Instant,
    lifetime: Duration,
}

/// What is known about the attempts to ask.
#[derive(Debug, Default)]
struct Attempts {
    /// How many have come to an end.
    ended: u64,
    /// What is told about the last one, if it failed.
    failure: Option<&'static str>,
    /// When a missing key last made us ask.
    missed: Option<Instant>,
}

/// Why there are no keys.
struct Failure {
    /// What callers are told.
    told: &'static str,
    /// What only the log is told.
    cause: String,
}

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct Keys {
    endpoint: Endpoint,
    /// Where discovery begins; nothing when the place of the keys is known.
    issuer: String,
    /// Where the keys are, once that is known.
    place: ArcSwapOption<Uri>,
    fetched: ArcSwapOption<Fetched>,
    asking: tokio::sync::Mutex<()>,
    attempts: Mutex<Attempts>,
}

impl Keys {
    pub(super) fn new(endpoint: Endpoint, issuer: &str, place: Option<Uri>) -> Self {
        Self {
            endpoint,
            issuer: issuer.to_owned(),
            place: ArcSwapOption::new(place.map(Arc::new)),
            fetched: ArcSwapOption::empty(),
            asking: tokio::sync::Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// Checks the signature of a token.
    pub(super) async fn verify(&self, token: &SignedToken<'_>) -> Result<(), TokenError> {
        let known = match self.fetched.load_full() {
            Some(known) => known,
            None => self.fetch(None).await?,
        };
        let is_old = known.at.elapsed() > known.lifetime;
        let known = match known.keys.has(&token.key_id) {
            true if !is_old => known,
            // Keys that are old are still better than none.
            true => self.fetch(Some(&known)).await.unwrap_or(known),
            false if self.may_ask_again() => self.fetch(Some(&known)).await.unwrap_or(known),
            false => known,
        };
        known.keys.verify(token)
    }

    /// Whether a key that is not there may make us ask now.
    fn may_ask_again(&self) -> bool {
        let mut attempts = self.attempts.lock();
        let may = attempts.missed.is_none_or(|missed| missed.elapsed() >= COOL_DOWN);
        if may {
            attempts.missed = Some(Instant::now());
        }
        may
    }

    /// Asks for keys newer than these, unless somebody else does.
    async fn fetch(&self, known: Option<&Arc<Fetched>>) -> Result<Arc<Fetched>, TokenError> {
        let before = self.attempts.lock().ended;
        let _turn = self.asking.lock().await;
        let now = self.fetched.load_full();
        if let Some(now) = now.filter(|now| known.is_none_or(|known| !Arc::ptr_eq(known, now))) {
            return Ok(now);
        }
        {
            let attempts = self.attempts.lock();
            if let Some(told) = attempts.failure.filter(|_| attempts.ended > before) {
                return Err(TokenError::Unknown(told));
            }
        }
        let asked = self.ask().await;
        let mut attempts = self.attempts.lock();
        attempts.ended += 1;
        attempts.failure = asked.as_ref().err().map(|failure| failure.told);
        let fetched = Arc::new(asked.map_err(|Failure { told, cause }| {
            tracing::warn!(issuer = self.issuer, cause, "{told}");
            TokenError::Unknown(told)
        })?);
        self.fetched.store(Some(Arc::clone(&fetched)));
        Ok(fetched)
    }

    async fn ask(&self) -> Result<Fetched, Failure> {
        if self.place.load().is_none() {
            self.place.store(Some(Arc::new(self.discover().await?)));
        }
        let place = self.place.load_full().map(|place| (*place).clone()).unwrap_or_default();
        let failed = |cause: String| Failure { told: "failed to fetch JWKS", cause };
        let request = Request::get(place).header(ACCEPT, KEY_SETS).body(bytes::Bytes::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let asked = tokio::time::timeout(PATIENCE, self.endpoint.send(request, LARGEST)).await;
        let asked = asked.map_err(|_| failed("it did not answer in time".to_owned()))?;
        let (head, body) = asked.map_err(|error| failed(error.to_string()))?.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(failed(format!("status {}", head.status.as_u16())));
        }
        let keys = KeySet::read(&body).ok_or_else(|| failed("it is no key set".to_owned()))?;
        Ok(Fetched { keys, at: Instant::now(), lifetime: lifetime(&head.headers) })
    }

    /// Finds the place of the keys, patiently: issuers start, too.
    async fn discover(&self) -> Result<Uri, Failure> {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut attempt = 1;
        loop {
            let tried = tokio::time::timeout(PATIENCE, self.discover_once()).await;
            match tried.unwrap_or_else(|_| Err("it did not answer in time".to_owned())) {
                Ok(place) => return Ok(place),
                Err(cause) if attempt == ATTEMPTS => {
                    return Err(Failure { told: "OIDC discovery failed", cause });
                }
                Err(_) => pauses.pause().await,
            }
            attempt += 1;
        }
    }

    async fn discover_once(&self) -> Result<Uri, String> {
        let issuer = self.issuer.strip_suffix('/').unwrap_or(&self.issuer);
        let request = Request::get(format!("{issuer}/.well-known/openid-configuration"))
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, HeaderValue::from_static("ToolHive/1.0"))
            .body(bytes::Bytes::new());
        let request = request.map_err(|error| error.to_string())?;
        let (head, body) = self.endpoint.send(request, LARGEST).await.map_err(|error| error.to_string())?.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(format!("status {}", head.status.as_u16()));
        }
        let document: Value = serde_json::from_slice(&body).map_err(|_| "it is no document".to_owned())?;
        let place = document["jwks_uri"].as_str().filter(|place| !place.is_empty());
        let place = place.and_then(|place| place.parse().ok());
        place.ok_or_else(|| "the document names no jwks_uri".to_owned())
    }
}

/// How long keys may be kept.
fn lifetime(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = directives.flat_map(|value| value.split(',')).map(str::trim);
    let age = directives.find_map(|directive| directive.to_ascii_lowercase().strip_prefix("max-age=")?.parse().ok());
    Duration::from_secs(age.unwrap_or_default()).clamp(SHORTEST, LONGEST)
}
