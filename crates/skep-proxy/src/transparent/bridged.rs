//! Clients of another era than the server's. All others pass through as they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use parking_lot::Mutex;
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Message, Param, Payload, Revision, header, translate};

use super::Transparent;
use super::look::Known;
use super::opening::Opening;
use super::target::{Dialect, Target};
use super::upstream::FromServer;
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::eras::begun_tasks::BegunTasks;
use crate::eras::holder::Holder;
use crate::eras::http::{HttpLine, is_json, is_no_endpoint, is_stream};
use crate::eras::legacy_client::{self, LegacyClient};
use crate::eras::line::{self, Line};
use crate::eras::listeners::Listeners;
use crate::eras::parking::Parking;
use crate::eras::pool::Pool;
use crate::eras::seal::Seals;
use crate::eras::session_tasks;
use crate::eras::settings::{BackendEra, EraSettings};
use crate::eras::surroundings::Proven;
use crate::eras::verdict::{self, Eras, Verdict};
use crate::intake::{self, Accepts};
use crate::limits::{FAREWELL, Limits};
use crate::listener::Peer;
use crate::middleware::{good_until, identity};
use crate::reply::whole;
use crate::sessions::{self, Session, Unavailable};
use crate::stdio::clients::Clients;
use crate::stdio::mirrors::Mirrors;

/// Bytes of an answer to a handshake that are looked at.
pub(super) const HANDSHAKE_BYTES: usize = 1 << 20;

/// What is needed where eras differ.
#[derive(Debug)]
pub(super) struct Bridging {
    pub(super) eras: Arc<Eras>,
    pub(super) pool: Arc<Pool>,
    pub(super) parking: Arc<Parking>,
    pub(super) mirrors: Arc<Mirrors>,
    pub(super) seals: Seals,
    pub(super) listeners: Arc<Listeners>,
    pub(super) tasks: Arc<BegunTasks>,
    /// Whether clients of sessions can be asked something.
    asks_sessions: bool,
    streams: Clients,
    clients: Mutex<HashMap<Arc<str>, Arc<LegacyClient>>>,
}

impl Bridging {
    /// For a server. `is_shared` says whether other proxies serve the same clients.
    pub(super) fn new(target: &Target, limits: &Limits, settings: &EraSettings, is_shared: bool) -> Self {
        let eras = Eras::default();
        eras.say(match target.dialect {
            // Its transport belongs to one era only.
            Dialect::Sse => BackendEra::Legacy,
            Dialect::Streamable => settings.era,
        });
        Self {
            eras: Arc::new(eras),
            pool: Arc::new(Pool::new(settings)),
            parking: Arc::new(Parking::new(settings.parked_calls.are_on(is_shared))),
            mirrors: Arc::default(),
            seals: Seals::new(&target.origin()),
            listeners: Arc::default(),
            tasks: Arc::default(),
            asks_sessions: settings.parked_calls.reach_sessions(is_shared),
            streams: Clients::new(limits),
            clients: Mutex::default(),
        }
    }

    fn client(&self, session: &Session) -> Arc<LegacyClient> {
        let mut clients = self.clients.lock();
        let client = clients
            .entry(Arc::clone(&session.id))
            .or_insert_with(|| LegacyClient::of(session, self.streams.open(&session.id, session.revision(), true)));
        Arc::clone(client)
    }

    fn forget(&self, session: &str) {
        if let Some(client) = self.clients.lock().remove(session) {
            client.close();
        }
        if let Some(client) = self.streams.remove(session) {
            client.close();
        }
    }
}

impl Transparent {
    /// Answers a request whose client is of another era than the server. What that takes is in boxes, because every request
    /// would have room for it otherwise.
    pub(super) async fn bridge(&self, peer: Peer, parts: &Parts, known: &mut Known) -> Result<Option<Answer>, Answer> {
        let is_modern = known.era == Some(Era::Modern);
        if self.dialect() != Dialect::Streamable && !is_modern {
            return Ok(None);
        }
        let session = known.session.clone().filter(|session| legacy_client::is_marked(session) && !is_modern);
        if let Some(session) = session
            && known.handshake.is_none()
        {
            return Box::pin(self.serve_legacy_client(peer, parts, known, &session)).await.map(Some);
        }
        match &known.payload {
            Some(Payload::Single(message)) if is_modern => {
                let message = message.clone();
                Box::pin(self.serve_modern_client(peer, parts, message, known)).await
            }
            Some(Payload::Single(message)) if known.handshake.is_some() && self.bridging.eras.refuses_handshakes() => {
                Box::pin(self.open_session(peer, parts, message)).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn line(&self, peer: Peer, parts: &Parts) -> Result<HttpLine, Answer> {
        let bad = || answer::text(StatusCode::BAD_REQUEST, "the address cannot be passed on");
        let path = self.target.path_and_query(self.dialect(), &Method::POST, &parts.uri).ok_or_else(bad)?;
        let uri = self.target.at(path).ok_or_else(bad)?;
        let headers =
            super::headers::outgoing(parts.headers.clone(), &parts.uri, &self.target, peer, Some(Era::Modern));
        let (mirrors, eras) = (Arc::clone(&self.bridging.mirrors), Arc::clone(&self.bridging.eras));
        let line = HttpLine::modern(self.upstream.clone(), uri, headers, self.limits.answers(), mirrors, eras);
        let line = line.of(Holder::of(parts), parts.extensions.get().cloned());
        Ok(line.good_until(good_until::of(parts)).proven(Proven::of(parts)))
    }

    async fn serve_legacy_client(
        &self,
        peer: Peer,
        parts: &Parts,
        known: &mut Known,
        session: &Session,
    ) -> Result<Answer, Answer> {
        let client = self.bridging.client(session);
        let line: Arc<dyn Line> = Arc::new(self.line(peer, parts)?);
        match (parts.method.clone(), known.payload.take()) {
            (Method::GET, _) => {
                Accepts::require_events(&parts.headers)?;
                Ok(client.listen(line, &parts.headers).await)
            }
            (Method::DELETE, _) => {
                self.sessions.delete(&session.id).await?;
                self.bridging.forget(&session.id);
                Ok(answer::empty(StatusCode::NO_CONTENT))
            }
            (Method::POST, Some(payload)) => {
                intake::require_json(&parts.headers)?;
                let accepts = Accepts::read(&parts.headers)?;
                Ok(match payload {
                    Payload::Single(message) => client.take(line, accepts, message).await,
                    Payload::Batch(messages) => client.take_batch(&line, messages).await,
                })
            }
            _ => Err(answer::wrong_method("GET, POST, DELETE")),
        }
    }

    /// Answers a handshake for a server that has none.
    async fn open_session(&self, peer: Peer, parts: &Parts, handshake: &Message) -> Result<Answer, Answer> {
        let accepts = Accepts::read(&parts.headers)?;
        let line = self.line(peer, parts)?;
        let discovered = verdict::discover(&line).await.map_err(line::Lost::answer)?;
        let id = handshake.owned_id();
        let Some(result) = discovered.result() else {
            self.bridging.eras.forget();
            let told =
                format!("the MCP server does not say what it can do: {}", discovered.error().unwrap_or_default());
            return Err(answer::fault(StatusCode::BAD_GATEWAY, &Fault::new(INTERNAL_ERROR, told), id.as_ref()));
        };
        let asked = handshake.param_text(Param::ProtocolVersion).unwrap_or_default();
        let revision = Revision::negotiate(&asked);
        let owner = identity::proven(&parts.extensions);
        let mut session = Session::new(&uuid::Uuid::new_v4().to_string(), sessions::Kind::Transparent, revision, owner);
        let capabilities = legacy_client::capabilities(handshake, revision);
        legacy_client::mark(&mut session, if self.bridging.asks_sessions { &capabilities } else { "{}" });
        let name = HeaderValue::from_str(&session.id);
        let session = session.at(Some(peer.address.ip()));
        let ended = self.sessions.create(session, |id| self.is_open(id)).await?;
        if let Some(ended) = ended {
            self.bridging.forget(&ended);
        }
        self.served.cancel();
        let text = line::result(handshake.id().unwrap_or("0"), &translate::initialized(result, &asked));
        let mut answer = whole(accepts, text);
        if let Ok(name) = name {
            answer.headers_mut().insert(header::SESSION_ID, name);
        }
        Ok(answer)
    }

    /// What a server answered to a handshake; when it has none, the handshake is ours.
    pub(super) async fn settle(
        &self,
        peer: Peer,
        parts: &Parts,
        known: &mut Known,
        response: Response<FromServer>,
    ) -> Result<Response<Body>, Answer> {
        let Some(Payload::Single(handshake)) = known.payload.as_ref().filter(|_| known.handshake.is_some()) else {
            return Ok(response.map(Body::FromServer));
        };
        let is_refusal = response.status().is_client_error()
            && !matches!(response.status().as_u16(), 401 | 403 | 407 | 408 | 425 | 429);
        let is_readable = response.status() == StatusCode::OK
            && (is_json(response.headers()) || is_stream(response.headers()))
            && !response.headers().contains_key(CONTENT_ENCODING);
        if self.dialect() != Dialect::Streamable || !(is_refusal || is_readable) {
            return Ok(response.map(Body::FromServer));
        }
        let (mut head, body) = response.into_parts();
        let opening = Opening::read(&head.headers, body, handshake).await?;
        if is_refusal || opening.message.as_ref().is_some_and(|message| message.error().is_some()) {
            let verdict = self.bridging.eras.verdict(&self.line(peer, parts)?).await;
            if matches!(verdict, Ok(Verdict::Modern)) {
                self.bridging.eras.refused_handshake();
                return Err(self.open_session(peer, parts, handshake).await.unwrap_or_else(|refusal| refusal));
            }
            let is_strange = opening.message.is_none() && is_no_endpoint(head.status);
            if is_strange && self.finds_stream(peer, parts).await? {
                return Err(self.open_dialled(peer, parts, handshake).await.unwrap_or_else(|refusal| refusal));
            }
        }
        known.has_tasks = opening.message.as_ref().is_some_and(session_tasks::are_offered_in);
        let handshake = handshake.clone();
        let other = self.settle_revision(known, &handshake, opening.message.as_ref());
        if other.is_some() {
            head.headers.remove(CONTENT_LENGTH);
        }
        Ok(Response::from_parts(head, opening.body(other)))
    }

    /// Ends what was not used for too long.
    pub(super) async fn sweep(&self) {
        if self.sweep_sessions().await.is_err() {
            tracing::debug!("sessions that have ended are kept until the store can be asked");
        }
        self.upstream.sweep();
        self.bridging.pool.sweep();
        self.bridging.parking.sweep().await;
    }

    /// Ends the sessions that were not used for too long. One that listens is used. What the store does not tell now, it
    /// tells the next time.
    async fn sweep_sessions(&self) -> Result<(), Unavailable> {
        for id in self.bridging.streams.listening().into_iter().chain(self.read.sessions()) {
            self.sessions.get(&id).await?;
        }
        self.bridging.streams.forget_ended(Instant::now());
        self.sessions.sweep();
        for id in self.bridging.streams.ids() {
            if !self.sessions.contains(&id).await? {
                self.bridging.forget(&id);
            }
        }
        Ok(())
    }

    /// Whether somebody reads a stream of this session.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.read.contains(id) || self.bridging.streams.is_open(id)
    }

    /// Ends the sessions that are ours.
    pub(crate) async fn close(&self) {
        let ending = async {
            for (_, client) in self.bridging.clients.lock().drain() {
                client.close();
            }
            self.bridging.parking.close().await;
            self.bridging.pool.close().await;
            self.dialled.bridge.end_connections().await;
        };
        let _ = tokio::time::timeout(FAREWELL, ending).await;
    }
}
