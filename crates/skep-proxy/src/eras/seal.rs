//! What clients keep between the rounds of one call, sealed: they cannot read it, and it is of no use to anybody else or
//! for anything else, nor after some time.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::{Fault, INVALID_PARAMS};
use skep_mcp::{Message, Param, json, method};
use tokio::sync::OnceCell;

use super::holder::Holder;
use super::modern_client::param;
use super::tasks;
use crate::answer::{self, Answer};
use crate::sessions::{Sessions, Unavailable};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// How long a client may take to come back.
const LIFETIME: Duration = Duration::from_mins(10);
/// What a sealed text begins with, so that another form of it can be told from this one.
const FORM: &str = "sk1.";
/// The parameter that brings it back.
const STATE: &str = "requestState";

/// What `requestState` is sealed with, as somebody gives it to all proxies that serve the same clients.
#[derive(Clone)]
pub struct SealKey([u8; KEY_BYTES]);

/// A secret is too short to make a key of: clients hold what was sealed with it, and could guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has {0} bytes, and needs {KEY_BYTES} or more")]
pub struct ShortKey(usize);

impl SealKey {
    /// The key that is made of a secret, whatever form that has. White space around it does not count.
    pub fn of(secret: &str) -> Result<Self, ShortKey> {
        let secret = secret.trim().as_bytes();
        if secret.len() < KEY_BYTES {
            return Err(ShortKey(secret.len()));
        }
        let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), b"requestState");
        let mut key = [0; KEY_BYTES];
        // Both are of the same length: that of the digest.
        key.copy_from_slice(made.as_ref());
        Ok(Self(key))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealKey")
    }
}

/// What is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// What the server wants back: a string, as JSON.
    OfServer(String),
    /// The call that waits here, by its name.
    Waiting(String),
    /// The call has to be made again, once somebody has visited pages.
    Pages,
}

impl State {
    fn write(&self) -> (u8, &[u8]) {
        match self {
            Self::OfServer(text) => (0, text.as_bytes()),
            Self::Waiting(name) => (1, name.as_bytes()),
            Self::Pages => (2, b""),
        }
    }

    fn read(kind: u8, text: &[u8]) -> Option<Self> {
        let text = || String::from_utf8(text.to_vec()).ok();
        match kind {
            0 => text().map(Self::OfServer),
            1 => text().map(Self::Waiting),
            2 => Some(Self::Pages),
            _ => None,
        }
    }
}

/// What was brought back is not what was given, or not for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// What a client is told that brings back what it should not, which is the same whatever is wrong.
pub(crate) fn refusal(request: &Message) -> Answer {
    let told = match request.method() {
        name if name.starts_with(method::TASKS) => "Task not found",
        _ => "requestState is not valid for this request, or no longer; what was called may have been done in part",
    };
    answer::fault(StatusCode::OK, &Fault::new(INVALID_PARAMS, told), request.owned_id().as_ref())
}

/// The keys of a proxy.
#[derive(Debug)]
pub(crate) struct Seal {
    states: RandomizedNonceKey,
    tasks: hmac::Key,
}

impl Seal {
    fn new(key: &[u8; KEY_BYTES]) -> Result<Self, Unspecified> {
        // One key is for one thing, so the other one is made from it.
        let tasks = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"tasks");
        let tasks = hmac::Key::new(hmac::HMAC_SHA256, tasks.as_ref());
        Ok(Self { states: RandomizedNonceKey::new(&AES_256_GCM, key)?, tasks })
    }

    /// What shows that something was given to somebody here.
    pub(super) fn tag(&self, given: &[u8]) -> hmac::Tag {
        hmac::sign(&self.tasks, given)
    }

    /// Whether it was.
    pub(super) fn has_made(&self, given: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.tasks, given, tag).is_ok()
    }

    fn close(&self, purpose: &[u8], state: &State, until: u64) -> Option<String> {
        let (kind, text) = state.write();
        let mut sealed = [&[kind], until.to_be_bytes().as_slice(), text].concat();
        let nonce = self.states.seal_in_place_append_tag(Aad::from(purpose), &mut sealed).ok()?;
        Some(format!("{FORM}{}", URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &sealed].concat())))
    }

    fn open(&self, purpose: &[u8], text: &str, now: u64) -> Option<State> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(FORM)?).ok()?;
        let (nonce, sealed) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.states.open_in_place(nonce, Aad::from(purpose), sealed).ok()?;
        let (kind, rest) = opened.split_first()?;
        let (until, text) = rest.split_first_chunk()?;
        (now <= u64::from_be_bytes(*until)).then(|| State::read(*kind, text)).flatten()
    }
}

/// The key of a proxy, once it is needed. All proxies that were given the same one, or else share sessions, have the same.
#[derive(Debug)]
pub(crate) struct Seals {
    /// Which server it is for.
    server: Box<str>,
    key: OnceCell<Arc<Seal>>,
}

impl Seals {
    /// The key for a server.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.into(), key: OnceCell::new() }
    }

    /// What a client has of an earlier round, and what it is given for the next one. Without a store that can be asked
    /// there is no next round.
    pub(crate) async fn of(
        &self,
        sessions: &Sessions,
        parts: &Parts,
        request: &Message,
    ) -> Result<States, Unavailable> {
        let states = |seal| States { seal, server: self.server.clone(), holder: Holder::of(parts) };
        let is_about_tasks = tasks::are_named_in(request);
        if !may_ask(request.method()) && !is_about_tasks {
            return Ok(states(None));
        }
        match self.key(sessions).await {
            Ok(key) => Ok(states(Some(key))),
            Err(Unavailable) if !is_about_tasks && param(request, STATE).is_none() => Ok(states(None)),
            Err(unavailable) => Err(unavailable),
        }
    }
}

impl Seals {
    /// What the tasks of somebody are known by, whatever is asked.
    pub(crate) async fn of_tasks(&self, sessions: &Sessions, holder: Holder) -> Result<States, Unavailable> {
        Ok(States { seal: Some(self.key(sessions).await?), server: self.server.clone(), holder })
    }

    async fn key(&self, sessions: &Sessions) -> Result<Arc<Seal>, Unavailable> {
        let key = self.key.get_or_try_init(async || {
            let key = sessions.secret().await?;
            Seal::new(&key).map(Arc::new).map_err(|_| Unavailable)
        });
        key.await.cloned()
    }
}

/// Whether a server may ask something before it answers such a request.
pub(crate) fn may_ask(name: &str) -> bool {
    matches!(name, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ)
}

/// Seals and opens what goes from one round of a call to the next, for one client.
#[derive(Debug, Clone)]
pub(crate) struct States {
    pub(super) seal: Option<Arc<Seal>>,
    server: Box<str>,
    pub(super) holder: Holder,
}

impl States {
    /// What the client comes back with, as JSON. Nothing when it cannot come back.
    pub(crate) fn close(&self, request: &Message, state: &State) -> Option<String> {
        let until = now() + LIFETIME.as_secs();
        let sealed = self.seal.as_ref()?.close(self.purpose(request).as_ref(), state, until)?;
        Some(json::quote(&sealed))
    }

    /// What the client comes back with, if it does.
    pub(crate) fn open(&self, request: &Message) -> Result<Option<State>, Broken> {
        let Some(text) = param(request, STATE).filter(|_| may_ask(request.method())) else { return Ok(None) };
        let text = json::decode(text).ok_or(Broken)?;
        let seal = self.seal.as_ref().ok_or(Broken)?;
        seal.open(self.purpose(request).as_ref(), &text, now()).map(Some).ok_or(Broken)
    }

    /// The request as its server gets it, with the server's own state in it, or its own ids of tasks.
    pub(crate) fn opened(&self, request: &Message) -> Result<Option<Message>, Broken> {
        let text = match self.open(request)? {
            Some(State::OfServer(state)) => {
                Some(json::set(request.as_str(), &["params", STATE], &state).map_err(|_| Broken)?)
            }
            Some(State::Waiting(_) | State::Pages) => return Err(Broken),
            None => self.unbound(request)?,
        };
        text.map(|text| Message::read(text.into()).map_err(|_| Broken)).transpose()
    }

    /// What makes two requests the same for the rounds of one call.
    fn purpose(&self, request: &Message) -> digest::Digest {
        let params = [Param::Name, Param::Uri, Param::Arguments].map(|name| request.param(name).map(str::as_bytes));
        self.of_holder(request.method(), &params)
    }

    /// What makes two tasks the same for a client.
    pub(super) fn task(&self, id: &str) -> digest::Digest {
        self.of_holder(method::TASKS, &[Some(id.as_bytes())])
    }

    /// Something that a client has at a server.
    fn of_holder(&self, what: &str, parts: &[Option<&[u8]>]) -> digest::Digest {
        let mut context = digest::Context::new(&digest::SHA256);
        let (kind, holder) = self.holder.parts();
        let whose = [self.server.as_bytes(), kind, holder, what.as_bytes()].map(Some);
        for part in whose.iter().chain(parts) {
            // With its length, so that no two sets of parts look alike.
            context.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
            context.update(part.unwrap_or_default());
        }
        context.finish()
    }
}

/// Seconds since the beginning of 1970. A clock before that is as good as one at it.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
pub(super) mod tests;
