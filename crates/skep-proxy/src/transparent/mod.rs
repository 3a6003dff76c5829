//! A server that speaks HTTP itself: requests and answers pass through as they are.
//!
//! What the proxy adds: it refuses what is no message, knows the sessions, makes the handshake again when the server was
//! replaced, and names addresses as clients can reach them.

mod announced;
mod batches;
mod between;
mod bridged;
mod dialled;
mod endpoint;
mod hand_back;
mod headers;
mod keeping;
mod look;
mod modern;
mod monitor;
mod older_transport;
mod opening;
mod recovery;
mod same_era;
mod small;
mod talks;
mod target;
#[cfg(test)]
mod tests;
pub(crate) mod upstream;

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use skep_mcp::header;
use tokio_util::sync::CancellationToken;

use self::announced::Announced;
use self::between::Told;
use self::bridged::Bridging;
use self::endpoint::Rewrite;
use self::hand_back::hand_back;
pub(crate) use self::headers::strip as strip_headers;
use self::look::Known;
pub use self::monitor::Probing;
use self::recovery::Turns;
use self::talks::Talks;
pub use self::target::{Dialect, Target, TargetError};
use self::upstream::{Failed, Outgoing, Upstream};
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::eras::dialled::Dialled;
use crate::forwarded::Forwarded;
use crate::intake;
use crate::limits::Limits;
use crate::listener::Peer;
use crate::middleware::identity;
use crate::readiness::{Readiness, State};
use crate::sessions::{SessionStore, Sessions};
use crate::tls::TlsError;
use crate::upload::Upload;

/// How long to wait between two attempts to reach a server that starts.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long the server may take when somebody asks about it. A kubelet waits three seconds for the answer.
const HEALTH_PATIENCE: Duration = Duration::from_secs(2);
/// How often sessions that have ended are looked for, at least.
const SWEEP: Duration = Duration::from_mins(1);

/// The way to a server that speaks HTTP.
#[derive(Debug)]
pub struct Transparent {
    target: Target,
    upstream: Upstream,
    sessions: Arc<Sessions>,
    turns: Turns,
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
    told: Told,
    /// The streams of clients of HTTP+SSE before a server of it.
    talks: Arc<Talks>,
    /// The sessions of clients of another transport than the server's.
    dialled: Arc<Dialled>,
}

impl Transparent {
    /// The way to a server.
    pub fn new(target: Target, limits: Limits, forwarded: Forwarded) -> Result<Self, TlsError> {
        let expected = CancellationToken::new();
        expected.cancel();
        let upstream = Upstream::new(&target, &limits)?;
        Ok(Self {
            dialled: Dialled::new(&upstream, &limits),
            upstream,
            sessions: Arc::new(Sessions::new(SessionStore::Memory, &limits)),
            turns: Turns::default(),
            forwarded,
            is_stateless: false,
            // Servers of somebody else are not asked unless that is wanted.
            probing: (!target.is_remote).then(Probing::default),
            served: CancellationToken::new(),
            expected,
            readiness: Readiness::default(),
            bridging: Bridging::new(&target.origin(), true),
            target,
            limits,
            told: Told::default(),
            talks: Arc::default(),
        })
    }

    /// Says that the server has no sessions.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.is_stateless = true;
        self
    }

    /// Says where sessions are kept. Where others keep theirs too, other proxies serve the same clients, so that no call
    /// can wait in this one for its client to come back.
    #[must_use]
    pub fn with_store(mut self, store: SessionStore) -> Self {
        self.bridging = Bridging::new(&self.target.origin(), matches!(store, SessionStore::Memory));
        self.sessions = Arc::new(Sessions::new(store, &self.limits));
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

    pub(crate) fn dialect(&self) -> Dialect {
        self.target.dialect
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
        let sweeping = async {
            loop {
                tokio::time::sleep(SWEEP.min(self.limits.session / 2)).await;
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
    pub(crate) async fn serve(&self, peer: Peer, request: Request<Upload>) -> Answer {
        let (mut parts, body) = request.into_parts();
        if self.target.is_remote {
            identity::withhold(&mut parts);
        }
        let request = Request::from_parts(parts, body);
        if self.is_streamable(&request) {
            return self.serve_streamable(peer, request).await.unwrap_or_else(|refusal| refusal);
        }
        if let Some(session) = self.older_session(&request) {
            return self.serve_older(peer, &session, request).await.unwrap_or_else(|refusal| refusal);
        }
        let (parts, body) = request.into_parts();
        self.pass(peer, parts, body).await.unwrap_or_else(|refusal| refusal)
    }

    async fn pass(&self, peer: Peer, parts: Parts, body: Upload) -> Result<Answer, Answer> {
        if let Some(reason) = self.readiness.reason() {
            return Err(answer::not_ready(&reason));
        }
        let sent = body.read(&self.limits).await?;
        let mut known = self.look(&parts, sent).await?;
        if let Some(answer) = self.bridge(peer, &parts, &mut known).await? {
            return Ok(answer);
        }
        if let Some(answer) = self.unbatch(peer, &parts, &mut known).await? {
            return Ok(answer);
        }
        let asked = (known.handshake.is_some() || known.alone.is_some()).then(|| parts.clone());
        let opening = self.opens_older(&parts).then(|| parts.clone());
        let announced = self.announced(&parts.headers, &known);
        let mut outgoing = self.outgoing(peer, parts, &known)?;
        if let Some(between) = known.between {
            between.ask(&mut outgoing, known.payload.as_ref());
        }
        if announced.is_some() || asked.is_some() {
            // What is to be changed has to be readable.
            outgoing.headers.remove(ACCEPT_ENCODING);
        }
        let response = self.exchange(&outgoing, &known).await?;
        if let Some(parts) = opening.filter(|_| Self::has_no_stream(response.status())) {
            return self.open_older(peer, &parts).await;
        }
        let response = match (&asked, &known.alone) {
            (Some(parts), Some(alone)) => self.doubt(peer, parts, &alone.request, response).await?,
            (Some(parts), None) => self.settle(peer, parts, &mut known, response).await?,
            (None, _) => response.map(Body::Incoming),
        };
        let (mut head, mut body) = response.into_parts();
        let begins =
            known.handshake.is_some() || known.alone.is_some() || head.headers.contains_key(header::SESSION_ID);
        if head.status == StatusCode::OK && begins {
            self.served.cancel();
        }
        self.keep_session(&head, &outgoing, &known).await?;
        body = small::in_one_piece(&head, body).await?;
        if let Some(between) = known.between {
            body = between.answer(&mut head, body, self.limits.line_bytes).await;
        }
        let answer = hand_back(head, body, &known, announced);
        match known.alone {
            Some(alone) => same_era::adapted(alone, answer, self.limits.line_bytes).await,
            None => Ok(answer),
        }
    }

    /// What is done with the stream of a client that says this about itself.
    fn announced(&self, headers: &HeaderMap, known: &Known) -> Option<Announced> {
        if self.target.dialect != Dialect::Sse {
            return None;
        }
        let is_scheme_told = self.forwarded.is_trusted && headers.contains_key("x-forwarded-proto");
        Some(Announced {
            sessions: Arc::clone(&self.sessions),
            caller: known.caller.clone(),
            served: self.served.clone(),
            rewrite: Rewrite::new(self.forwarded.reached(headers, "http", None), is_scheme_told),
            is_known: false,
            talks: Arc::clone(&self.talks),
            talk: None,
            largest: self.limits.line_bytes,
        })
    }

    fn outgoing(&self, peer: Peer, parts: Parts, known: &Known) -> Result<Outgoing, Answer> {
        let bad = || answer::text(StatusCode::BAD_REQUEST, "the address cannot be passed on");
        let path = self.target.path_and_query(&parts.method, &parts.uri).ok_or_else(bad)?;
        let mut headers = headers::outgoing(parts.headers, &parts.uri, &self.target, peer, known.era);
        if known.payload.is_some() {
            headers::as_read(&mut headers);
        }
        if known.handshake.is_some() {
            headers.remove(header::SESSION_ID);
        }
        let mut outgoing = Outgoing {
            method: parts.method,
            uri: self.target.at(path).ok_or_else(bad)?,
            headers,
            body: known.body.clone(),
            signer: parts.extensions.get().cloned(),
        };
        if let Some(session) = known.bound() {
            outgoing.aim(session);
        }
        Ok(outgoing)
    }

    /// Sends a request; once more when its server was replaced.
    async fn exchange(&self, outgoing: &Outgoing, known: &Known) -> Result<Response<Incoming>, Answer> {
        let unreachable = |_: Failed| answer::empty(StatusCode::BAD_GATEWAY);
        let first = self.upstream.send(outgoing).await;
        if first.is_err() && known.alone.is_some() {
            // Whoever comes up in its place may be of another era.
            self.bridging.eras.forget();
        }
        let session = known.bound().filter(|_| outgoing.method != Method::DELETE);
        let is_replaced = match &first {
            Ok(response) => response.status() == StatusCode::NOT_FOUND,
            Err(failed) => failed.is_unreached,
        };
        let Some(session) = session.filter(|_| is_replaced) else {
            return first.map_err(unreachable);
        };
        let Some(renewed) = self.recover(session, outgoing).await? else { return first.map_err(unreachable) };
        let mut again = outgoing.clone();
        again.aim(&renewed);
        self.upstream.send(&again).await.map_err(unreachable)
    }
}
