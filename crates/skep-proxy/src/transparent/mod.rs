//! A server that speaks HTTP itself: requests and answers pass through as they are.
//!
//! What the proxy adds: it refuses what is no message, knows the sessions, makes the handshake again when the server was
//! replaced, and names addresses as clients can reach them.

mod addresses;
mod announced;
mod asked;
mod batches;
mod between;
mod bridged;
mod dialled;
mod endpoint;
mod found;
mod hand_back;
mod headers;
mod keeping;
mod listening;
mod look;
mod modern;
mod monitor;
mod older_transport;
mod opening;
mod pass;
mod read;
mod recovery;
mod same_era;
mod small;
mod talk;
mod target;
mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod upstream;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http::{HeaderMap, Method};
use tokio_util::sync::CancellationToken;

use self::addresses::Addresses;
use self::between::Told;
use self::bridged::Bridging;
use self::found::Search;
pub(crate) use self::headers::strip as strip_headers;
pub use self::monitor::Probing;
use self::read::Read;
pub use self::target::{Dialect, Target, TargetError};
use self::upstream::Upstream;
use crate::answer::{self, Answer};
use crate::eras::dialled::Dialled;
use crate::eras::settings::EraSettings;
use crate::eras::verdict::Eras;
use crate::forwarded::Forwarded;
use crate::intake;
use crate::limits::Limits;
use crate::middleware::{Exchange, identity};
use crate::readiness::{Readiness, State};
use crate::sessions::{SessionStore, Sessions};
use crate::tls::TlsError;
use crate::turns::Turns;

/// How long to wait between two attempts to reach a server that starts.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long the server may take when somebody asks about it. A kubelet waits three seconds for the answer.
const HEALTH_PATIENCE: Duration = Duration::from_secs(2);
/// How often sessions that have ended are looked for, at least.
const SWEEP: Duration = Duration::from_mins(1);
/// The same, at most.
const SHORTEST_SWEEP: Duration = Duration::from_millis(100);

/// The way to a server that speaks HTTP.
#[derive(Debug)]
pub struct Transparent {
    target: Target,
    upstream: Upstream,
    sessions: Arc<Sessions>,
    /// Those of them that somebody listens in.
    read: Arc<Read>,
    /// Lets one request at a time make the handshake of a session again.
    turns: Turns<Arc<str>>,
    forwarded: Forwarded,
    /// Whether the server has no sessions, so that there is nothing but POST.
    is_stateless: bool,
    /// Whether and how the server is asked if it is alive.
    probing: Option<Probing>,
    /// Cancelled when the first client has got an answer.
    served: CancellationToken,
    /// Cancelled when it is time to look for the server.
    expected: CancellationToken,
    readiness: Readiness,
    limits: Limits,
    bridging: Bridging,
    eras: EraSettings,
    /// Whether other proxies serve the same clients.
    is_shared: bool,
    told: Told,
    /// The streams of clients of HTTP+SSE before a server of it.
    addresses: Arc<Addresses>,
    /// The sessions of clients of another transport than the server's.
    dialled: Arc<Dialled>,
    /// For a server that may be of another transport than somebody says.
    search: Search,
}

impl Transparent {
    /// The way to a server.
    pub fn new(target: Target, limits: Limits, forwarded: Forwarded) -> Result<Self, TlsError> {
        let expected = CancellationToken::new();
        expected.cancel();
        let upstream = Upstream::new(&target, &limits)?;
        let readiness = Readiness::default();
        if target.is_remote {
            // Nobody waits for it: a request finds out.
            readiness.set(State::Ready);
        }
        Ok(Self {
            dialled: Dialled::new(&upstream, &limits),
            upstream,
            sessions: Arc::new(Sessions::new(SessionStore::memory(), &limits)),
            read: Arc::default(),
            turns: Turns::default(),
            forwarded,
            is_stateless: false,
            // Servers of somebody else are not asked unless that is wanted.
            probing: (!target.is_remote).then(Probing::default),
            served: CancellationToken::new(),
            expected,
            readiness,
            bridging: Bridging::new(&target, &limits, &EraSettings::default(), false),
            eras: EraSettings::default(),
            is_shared: false,
            target,
            limits,
            told: Told::default(),
            addresses: Arc::default(),
            search: Search::default(),
        })
    }

    /// Says that the server has no sessions.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.is_stateless = true;
        self
    }

    /// Says where sessions are kept. Where others keep theirs too, other proxies serve the same clients, so that no call
    /// waits in this one for its client to come back, unless somebody wants it to.
    #[must_use]
    pub fn with_store(mut self, store: SessionStore) -> Self {
        self.is_shared = store.is_shared();
        self.bridging = Bridging::new(&self.target, &self.limits, &self.eras, self.is_shared);
        self.sessions = Arc::new(Sessions::new(store, &self.limits));
        self
    }

    /// Says how clients of another era than the server's are served.
    #[must_use]
    pub fn with_eras(mut self, settings: EraSettings) -> Self {
        self.bridging = Bridging::new(&self.target, &self.limits, &settings, self.is_shared);
        self.eras = settings;
        self
    }

    /// Says how the server is asked if it is alive, or that it is not.
    #[must_use]
    pub fn with_probing(mut self, probing: Option<Probing>) -> Self {
        self.probing = probing;
        self
    }

    /// Says that the server is looked for when `expected` is cancelled, and not before. `readiness` says why until then.
    #[must_use]
    pub fn expecting(mut self, expected: CancellationToken, readiness: Readiness) -> Self {
        (self.expected, self.readiness) = (expected, readiness);
        self
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// What is known about the era of the server.
    pub(crate) fn eras(&self) -> &Arc<Eras> {
        &self.bridging.eras
    }

    /// What the server speaks: what somebody says, unless it turned out to speak something else.
    pub(crate) fn dialect(&self) -> Dialect {
        if self.dialled.found().is_some() { Dialect::Sse } else { self.target.dialect }
    }

    /// Whether the server answers now, if it is asked such things.
    pub(crate) async fn health(&self) -> Option<Result<Duration, String>> {
        let probing = self.probing.as_ref()?;
        if let Some(reason) = self.readiness.reason() {
            return Some(Err(reason.to_string()));
        }
        Some(self.probe(probing.patience.min(HEALTH_PATIENCE)).await)
    }

    /// Waits until the server can be reached, and then keeps the sessions in order. Ends when the server is given up.
    pub(crate) async fn run(&self) {
        self.await_server().await;
        self.readiness.set(State::Ready);
        let idle = self.eras.session_idle.max(SHORTEST_SWEEP);
        let sweeping = async {
            loop {
                tokio::time::sleep(SWEEP.min(self.limits.session / 2).min(idle)).await;
                self.sweep().await;
            }
        };
        match &self.probing {
            None => sweeping.await,
            Some(probing) => tokio::select! {
                () = sweeping => {}
                () = self.watch(probing) => {}
            },
        }
    }

    /// A server of ours is there when it listens. One of somebody else is there, or a request finds out.
    async fn await_server(&self) {
        self.expected.cancelled().await;
        if self.target.is_remote {
            return;
        }
        let mut pause = FIRST_PAUSE;
        let (host, port) = (self.target.authority.host(), self.target.authority.port_u16().unwrap_or(80));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        loop {
            let connected = tokio::time::timeout(self.limits.head, tokio::net::TcpStream::connect((host, port))).await;
            if matches!(connected, Ok(Ok(_))) {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Refuses a verb that has no meaning without sessions.
    pub(crate) fn gate(&self, method: &Method, headers: &HeaderMap) -> Result<(), Answer> {
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::DELETE);
        if is_read && (self.is_stateless || intake::is_modern(headers)) {
            return Err(answer::wrong_method("POST, OPTIONS"));
        }
        Ok(())
    }

    /// Answers a request.
    pub(crate) fn serve<'a>(&'a self, mut exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        let parts = &mut exchange.parts;
        if self.target.is_remote {
            identity::withhold(parts);
        }
        let itself = |refusal| refusal;
        if self.is_streamable(parts) {
            return self.serve_streamable(exchange).unwrap_or_else(itself).boxed();
        }
        if let Some(session) = self.older_session(parts) {
            return self.serve_older(session, exchange).unwrap_or_else(itself).boxed();
        }
        self.pass(exchange).unwrap_or_else(itself).boxed()
    }
}
