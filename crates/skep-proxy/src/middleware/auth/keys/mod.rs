//! The keys of an issuer, found when they are first needed and kept for a while.
//!
//! One request at a time asks the issuer; the others wait for what it finds, whether that is keys or a failure. A failure
//! is not remembered: whoever comes later asks again. A key that is not there makes us ask at once, but not too often;
//! whoever misses one while somebody asks waits for that. Keys that are old are used while newer ones are asked for.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::header::{ACCEPT, CACHE_CONTROL, DATE, EXPIRES, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use parking_lot::Mutex;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::issuer::{Endpoint, LARGEST};
use super::key_set::KeySet;
use super::token::{SignedToken, TokenError};
use crate::fetch::{without_query, without_user};
use crate::pauses::Pauses;

/// How long keys are kept, whatever the issuer says.
const SHORTEST: Duration = Duration::from_mins(15);
const LONGEST: Duration = Duration::from_hours(30 * 24);
/// How often a key that is not there makes us ask, and how often keys that are old do.
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
    /// Which fetch that was.
    number: u64,
    keys: KeySet,
    at: Instant,
    lifetime: Duration,
}

impl Fetched {
    fn is_old(&self) -> bool {
        self.at.elapsed() > self.lifetime
    }
}

/// What is known about the attempts to ask.
#[derive(Debug, Default)]
struct Attempts {
    /// How many ask, or wait for a turn to.
    under_way: usize,
    /// How many have come to an end.
    ended: u64,
    /// What is told about the last one, if it failed.
    failure: Option<&'static str>,
    /// When a missing key last made us ask.
    missed: Option<Instant>,
    /// When old keys last made us ask.
    renewed: Option<Instant>,
}

impl Attempts {
    /// Whether something that happened then may make us ask now. If so, it happened now.
    fn is_due(last: &mut Option<Instant>) -> bool {
        let is_due = last.is_none_or(|last| last.elapsed() >= COOL_DOWN);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
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
    source: Arc<Source>,
    /// Asks for newer keys than those that are used meanwhile.
    renewing: Mutex<JoinSet<()>>,
}

/// Where keys come from, and those that came last.
#[derive(Debug)]
struct Source {
    endpoint: Endpoint,
    /// Where discovery begins; nothing when the place of the keys is known.
    issuer: String,
    /// Where the keys are, once that is known.
    place: ArcSwapOption<Uri>,
    fetched: ArcSwapOption<Fetched>,
    asking: tokio::sync::Mutex<()>,
    attempts: Mutex<Attempts>,
    /// Told when one who asks has come to an end.
    ended: Notify,
    /// How long keys are kept at least.
    shortest: Duration,
}

/// One who asks, or waits for a turn to.
struct Asking(Arc<Source>);

impl Asking {
    fn new(source: &Arc<Source>, attempts: &mut Attempts) -> Self {
        attempts.under_way += 1;
        Self(Arc::clone(source))
    }

    fn begin(source: &Arc<Source>) -> Self {
        Self::new(source, &mut source.attempts.lock())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.attempts.lock().under_way -= 1;
        self.0.ended.notify_waiters();
    }
}

/// What there is to do for somebody whom some keys are not enough for.
enum Turn {
    /// There are newer ones.
    Take(Arc<Fetched>),
    /// Somebody asks for newer ones.
    Wait,
    /// Somebody has done so just before.
    Pass,
}

impl Keys {
    pub(super) fn new(endpoint: Endpoint, issuer: &str, place: Option<Uri>) -> Self {
        Self::kept_for(SHORTEST, endpoint, issuer, place)
    }

    fn kept_for(shortest: Duration, endpoint: Endpoint, issuer: &str, place: Option<Uri>) -> Self {
        let source = Source {
            endpoint,
            issuer: issuer.to_owned(),
            place: ArcSwapOption::new(place.map(Arc::new)),
            fetched: ArcSwapOption::empty(),
            asking: tokio::sync::Mutex::default(),
            attempts: Mutex::default(),
            ended: Notify::new(),
            shortest,
        };
        Self { source: Arc::new(source), renewing: Mutex::default() }
    }

    /// The number of the keys, unless they are old or there are none. Other keys have another number.
    pub(super) fn current(&self) -> Option<u64> {
        self.source.fetched.load().as_ref().filter(|known| !known.is_old()).map(|known| known.number)
    }

    /// Checks the signature of a token. Gives the number of the keys that it was checked with.
    pub(super) async fn verify(&self, token: &SignedToken<'_>) -> Result<u64, TokenError> {
        let mut known = match self.source.fetched.load_full() {
            Some(known) => known,
            None => Asking::begin(&self.source).fetch(None).await?,
        };
        if known.is_old() {
            // Nobody waits for it: keys that are old are better than none, and their issuer may be away for long.
            self.turn(&known, |attempts| &mut attempts.renewed);
        }
        while !known.keys.has(&token.key_id) {
            let ended = self.source.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            match self.turn(&known, |attempts| &mut attempts.missed) {
                Turn::Take(newer) => known = newer,
                Turn::Wait => ended.await,
                Turn::Pass => break,
            }
        }
        known.keys.verify(token)?;
        Ok(known.number)
    }

    /// Has newer keys asked for, unless somebody asks, or has done so for that reason just before. It does not end with
    /// whoever wants them: clients that come and go must not make us ask and ask.
    fn turn(&self, known: &Arc<Fetched>, reason: fn(&mut Attempts) -> &mut Option<Instant>) -> Turn {
        let mut attempts = self.source.attempts.lock();
        let now = self.source.fetched.load_full();
        if let Some(newer) = now.filter(|now| !Arc::ptr_eq(now, known)) {
            return Turn::Take(newer);
        }
        if attempts.under_way > 0 {
            return Turn::Wait;
        }
        if !Attempts::is_due(reason(&mut attempts)) {
            return Turn::Pass;
        }
        let (asking, known) = (Asking::new(&self.source, &mut attempts), Arc::clone(known));
        let mut renewing = self.renewing.lock();
        while renewing.try_join_next().is_some() {}
        renewing.spawn(async move {
            // A failure is told to the log where it happens.
            let _ = asking.fetch(Some(&known)).await;
        });
        Turn::Wait
    }
}

impl Asking {
    /// Asks for keys newer than these, unless somebody else does.
    async fn fetch(self, known: Option<&Arc<Fetched>>) -> Result<Arc<Fetched>, TokenError> {
        let source = &self.0;
        let before = source.attempts.lock().ended;
        let _turn = source.asking.lock().await;
        let now = source.fetched.load_full();
        if let Some(now) = now.filter(|now| known.is_none_or(|known| !Arc::ptr_eq(known, now))) {
            return Ok(now);
        }
        {
            let attempts = source.attempts.lock();
            if let Some(told) = attempts.failure.filter(|_| attempts.ended > before) {
                return Err(TokenError::Unknown(told));
            }
        }
        let number = source.attempts.lock().ended + 1;
        let asked = source.ask(number).await;
        let mut attempts = source.attempts.lock();
        attempts.ended = number;
        attempts.failure = asked.as_ref().err().map(|failure| failure.told);
        let fetched = Arc::new(asked.map_err(|Failure { told, cause }| {
            let issuer = without_user(&source.issuer);
            tracing::warn!(%issuer, cause, "{told}");
            TokenError::Unknown(told)
        })?);
        source.fetched.store(Some(Arc::clone(&fetched)));
        Ok(fetched)
    }
}

impl Source {
    async fn ask(&self, number: u64) -> Result<Fetched, Failure> {
        if self.place.load().is_none() {
            self.place.store(Some(Arc::new(self.discover().await?)));
        }
        let place = self.place.load_full().map(|place| (*place).clone()).unwrap_or_default();
        let failed = |cause: String| Failure { told: "failed to fetch JWKS", cause };
        let request = Request::get(&place).header(ACCEPT, KEY_SETS).body(bytes::Bytes::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let asked = tokio::time::timeout(PATIENCE, self.endpoint.send(request, LARGEST)).await;
        let asked = asked.map_err(|_| failed("it did not answer in time".to_owned()))?;
        let (head, body) = asked.map_err(|error| failed(error.with_hint()))?.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(failed(format!("status {}", head.status.as_u16())));
        }
        let keys = KeySet::read(&body).ok_or_else(|| failed("it is no key set".to_owned()))?;
        if keys.is_useless() {
            // It is asked for at most every 30 s, and so this is told.
            let (place, cause) = (without_query(&place), "no key in it is one for RS256 to RS512 or ES256 to ES512");
            tracing::warn!(place, cause, "no token can be checked with the key set");
        }
        Ok(Fetched { number, keys, at: Instant::now(), lifetime: lifetime(&head.headers, self.shortest) })
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
        let (head, body) = self.endpoint.send(request, LARGEST).await.map_err(|error| error.with_hint())?.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(format!("status {}", head.status.as_u16()));
        }
        let document: Value = serde_json::from_slice(&body).map_err(|_| "it is no document".to_owned())?;
        let place = document["jwks_uri"].as_str().filter(|place| !place.is_empty());
        let place = place.and_then(|place| place.parse().ok());
        place.ok_or_else(|| "the document names no jwks_uri".to_owned())
    }
}

/// How long keys may be kept: as long as the issuer says, from `shortest` to the longest.
fn lifetime(headers: &HeaderMap, shortest: Duration) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = directives.flat_map(|value| value.split(',')).map(str::trim);
    let age = directives.find_map(|directive| directive.to_ascii_lowercase().strip_prefix("max-age=")?.parse().ok());
    let told = age.map(Duration::from_secs).or_else(|| until_end(headers));
    told.unwrap_or_default().clamp(shortest, LONGEST)
}

/// From when an answer was given to the end that it names.
fn until_end(headers: &HeaderMap) -> Option<Duration> {
    let time = |name: HeaderName| OffsetDateTime::parse(headers.get(name)?.to_str().ok()?, &Rfc2822).ok();
    let given = time(DATE).unwrap_or_else(OffsetDateTime::now_utc);
    (time(EXPIRES)? - given).try_into().ok()
}
