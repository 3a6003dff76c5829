//! What the HTTP side and the server side of a bridge share.

mod ending;
mod telling;

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use parking_lot::Mutex;
use skep_mcp::Message;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::audience::Audience;
use super::calls::Calls;
use super::clients::Clients;
use super::connect::Connector;
use super::handshake::Handshake;
use super::log_level::LogLevels;
use super::oddities::Oddities;
use super::outbox::{Outbox, Queued};
use super::processes::{Begun, Pool, Processes};
use super::subscriptions::Subscriptions;
use crate::answer::Answer;
use crate::eras::legacy_client::LegacyClient;
use crate::eras::listeners::Listeners;
use crate::eras::seal::{Seals, States};
use crate::eras::settings::BackendEra;
use crate::eras::verdict::Eras;
use crate::limits::{self, Limits};
use crate::readiness::Readiness;
use crate::sessions::{SessionStore, Sessions, Unavailable};

/// The bridge between HTTP clients and a server on standard input and output.
#[derive(Debug)]
pub struct Bridge {
    audience: Audience,
    /// Processes of which each is for one session.
    pool: Option<Arc<Pool>>,
    /// Cancelled when the session has ended that the process was for.
    over: CancellationToken,
    /// Whether anything was asked in a session.
    is_taken_up: AtomicBool,
    /// Whether somebody was warned that the client leaves questions unread.
    is_unread_known: AtomicBool,
    /// What was told of the server.
    oddities: Oddities,
    calls: Arc<Calls>,
    clients: Clients,
    pub(super) sessions: Sessions,
    /// For what clients keep between the rounds of a call.
    seals: Seals,
    listeners: Arc<Listeners>,
    subscriptions: Subscriptions,
    log_levels: LogLevels,
    handshake: Handshake,
    eras: Arc<Eras>,
    /// Sessions that are ours because the process has none.
    pub(super) legacy_clients: Mutex<HashMap<Arc<str>, Arc<LegacyClient>>>,
    readiness: Readiness,
    limits: Limits,
    outgoing: Mutex<Option<mpsc::Receiver<Queued>>>,
    /// Servers whose streams are closed, on their way to an end.
    endings: Mutex<JoinSet<Option<ExitStatus>>>,
}

impl Bridge {
    /// A bridge whose server is not there yet. [`Bridge::run`] connects it.
    pub fn new(limits: Limits, readiness: Readiness) -> Arc<Self> {
        Self::with_store(limits, readiness, SessionStore::memory())
    }

    /// The same, with sessions that are kept somewhere else.
    pub fn with_store(limits: Limits, readiness: Readiness, store: SessionStore) -> Arc<Self> {
        Arc::new(Self::of(Audience::Everybody, limits, readiness, store))
    }

    /// The same, with a process for each session besides the one for all who have none. Sessions end with this bridge.
    pub fn with_processes(
        limits: Limits,
        readiness: Readiness,
        store: SessionStore,
        processes: impl Processes,
    ) -> Arc<Self> {
        let pool = Some(Pool::new(processes, limits.clone()));
        Arc::new(Self { pool, ..Self::of(Audience::Everybody, limits, readiness, store) })
    }

    /// A bridge to the process of one session, until it is over.
    pub(super) fn of_one_session(limits: Limits, over: CancellationToken) -> Arc<Self> {
        let bridge = Self::of(Audience::OneSession, limits, Readiness::default(), SessionStore::memory());
        Arc::new(Self { over, ..bridge })
    }

    fn of(audience: Audience, limits: Limits, readiness: Readiness, store: SessionStore) -> Self {
        let (outbox, outgoing) = Outbox::new(limits::QUEUED_MESSAGES);
        Self {
            audience,
            pool: None,
            over: CancellationToken::new(),
            is_taken_up: AtomicBool::new(false),
            is_unread_known: AtomicBool::new(false),
            oddities: Oddities::default(),
            calls: Calls::new(outbox, limits.request, audience, limits.held.clone()),
            clients: Clients::new(&limits),
            sessions: Sessions::new(store, &limits),
            seals: Seals::new("stdio"),
            listeners: Arc::default(),
            subscriptions: Subscriptions::default(),
            log_levels: LogLevels::default(),
            handshake: Handshake::new(audience),
            eras: Eras::of_process(),
            legacy_clients: Mutex::default(),
            readiness,
            limits,
            outgoing: Mutex::new(Some(outgoing)),
            endings: Mutex::default(),
        }
    }

    /// Says of which era the server is, so that it is never asked. To be said before there are clients.
    pub fn say_era(&self, era: BackendEra) {
        self.eras.say(era);
        if let Some(pool) = &self.pool {
            pool.say_era(era);
        }
    }

    pub(super) fn audience(&self) -> Audience {
        self.audience
    }

    pub(super) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// The bridge that has a session of this name, if there is one.
    pub(super) fn of_session(self: &Arc<Self>, id: Option<&str>) -> Arc<Self> {
        let own = self.pool.as_ref().zip(id).and_then(|(pool, id)| pool.get(id));
        own.unwrap_or_else(|| Arc::clone(self))
    }

    /// The bridge for a session that begins now.
    pub(super) async fn begin(self: &Arc<Self>) -> Result<Begun, Answer> {
        match &self.pool {
            Some(pool) => pool.begin().await,
            None => Ok(Begun::shared(self)),
        }
    }

    /// The bridge for a session that begins now and brings its connection.
    pub(super) async fn begin_with(self: &Arc<Self>, connector: Box<dyn Connector>) -> Result<Begun, Answer> {
        match &self.pool {
            Some(pool) => pool.begin_with(connector).await,
            None => Ok(Begun::shared(self)),
        }
    }

    /// Something is asked in a session.
    pub(super) fn take_up(&self) {
        self.is_taken_up.store(true, Ordering::Relaxed);
    }

    /// Whether anything was asked in a session.
    pub(super) fn is_taken_up(&self) -> bool {
        self.is_taken_up.load(Ordering::Relaxed)
    }

    /// Warns of a client that leaves questions unread, once for its session.
    pub(super) fn warn_unread(&self) {
        if !self.is_unread_known.swap(true, Ordering::Relaxed) {
            tracing::warn!("the client does not read what the MCP server asks; questions are refused for it");
        }
    }

    /// Whether nobody waits for anything.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_quiet() && self.clients.listening().is_empty()
    }

    pub(super) fn oddities(&self) -> &Oddities {
        &self.oddities
    }

    pub(super) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    pub(super) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    pub(super) fn log_levels(&self) -> &LogLevels {
        &self.log_levels
    }

    pub(super) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    pub(super) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// What is known about the era of the server.
    pub(crate) fn eras(&self) -> &Arc<Eras> {
        &self.eras
    }

    /// What a client keeps between the rounds of a call.
    pub(super) async fn states(&self, parts: &Parts, request: &Message) -> Result<States, Unavailable> {
        self.seals.of(&self.sessions, parts, request).await
    }

    /// The session of a client that is older than the process.
    pub(super) fn legacy_client(&self, id: &str) -> Option<Arc<LegacyClient>> {
        self.legacy_clients.lock().get(id).cloned()
    }

    /// Keeps the session of a client that is older than the process, if that one is still there.
    pub(super) fn keep_legacy_client(&self, client: Arc<LegacyClient>) {
        let mut kept = self.legacy_clients.lock();
        // A session is forgotten under the same lock, after it is gone.
        if self.clients.get(client.id()).is_some() {
            kept.insert(Arc::clone(client.id()), client);
        } else {
            client.close();
        }
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The messages for the server; there is one that sends them.
    pub(super) fn take_outgoing(&self) -> Option<mpsc::Receiver<Queued>> {
        self.outgoing.lock().take()
    }
}
