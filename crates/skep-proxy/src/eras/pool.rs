//! Sessions at a server, opened for clients that have none.
//!
//! A session belongs to one client, known by its credentials, and to what that client can be asked. A client without
//! credentials cannot be told from another one, so that it gets a session for each request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::{Kind, Message, Revision, json, method};

use super::http::HttpLine;
use super::line::{self, Hosts, Line, Lost, NoSession, Seat, Sharing};
use super::verdict::Eras;
use crate::stdio::LineSession;

/// How long a session lives that nobody uses, and how long at most.
const IDLE: Duration = Duration::from_mins(5);
const OLDEST: Duration = Duration::from_hours(1);
/// Sessions of one client, and of all.
const PER_CLIENT: usize = 8;
const ALL: usize = 256;
/// How long a server may take for a handshake, and for the end of a session.
const HANDSHAKE: Duration = Duration::from_secs(30);
const FAREWELL: Duration = Duration::from_secs(2);

/// Headers that say nothing about who a client is.
const IMPERSONAL: [&str; 14] = [
    "host",
    "user-agent",
    "accept-language",
    "connection",
    "cache-control",
    "pragma",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
    "traceparent",
    "tracestate",
    "baggage",
    "origin",
];

/// Who a client is: whom the chain has found it to be, and what it proves itself with to the server. A header that all
/// clients get from us says nothing about who they are. Nothing when it does neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Principal {
    caller: Option<Arc<str>>,
    headers: Option<Vec<(HeaderName, HeaderValue)>>,
}

impl fmt::Debug for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_known() { "Principal(known)" } else { "Principal(anonymous)" })
    }
}

impl Principal {
    /// Whether it can be told from others.
    pub(super) fn is_known(&self) -> bool {
        self.caller.is_some() || self.headers.is_some()
    }

    /// Somebody who proves nothing.
    pub(crate) fn unknown() -> Self {
        Self { caller: None, headers: None }
    }

    #[cfg(test)]
    pub(super) fn known(caller: &str) -> Self {
        Self { caller: Some(caller.into()), headers: None }
    }

    /// Whoever comes by this line.
    pub(crate) fn of(line: &HttpLine) -> Self {
        let caller = line.caller().cloned();
        if !line.headers().contains_key(AUTHORIZATION) {
            return Self { caller, headers: None };
        }
        let is_personal =
            |name: &HeaderName| !IMPERSONAL.contains(&name.as_str()) && !name.as_str().starts_with("mcp-");
        let headers = line.headers().iter().filter(|(name, _)| is_personal(name));
        let mut headers: Vec<_> = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        headers.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        Self { caller, headers: Some(headers) }
    }
}

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Purpose {
    principal: Principal,
    /// What the client can be asked: an object.
    capabilities: String,
}

/// All sessions of one proxy.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    sessions: Mutex<Vec<Entry>>,
    /// One session at a time is opened for a purpose; the others of that purpose find it open.
    opening: Mutex<HashMap<Purpose, Arc<tokio::sync::Mutex<()>>>>,
    farewells: Mutex<tokio::task::JoinSet<()>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<ServerSession>,
    purpose: Purpose,
    users: usize,
    /// Whether the one user does not share it.
    is_exclusive: bool,
    opened: Instant,
    used: Instant,
}

/// A session at a server.
#[derive(Debug)]
pub(crate) struct ServerSession {
    line: Opened,
    agreed: Arc<str>,
}

#[derive(Debug)]
enum Opened {
    /// As its client talked to it last, which is how it is ended, too.
    Http(Box<Mutex<HttpLine>>),
    Lines(LineSession),
}

impl ServerSession {
    /// A session with a server that is talked to in lines.
    pub(crate) fn of_lines(session: LineSession) -> Self {
        Self { agreed: Arc::clone(session.told()), line: Opened::Lines(session) }
    }

    /// The way to the server, for a client that comes by this line now. What is said with a request is its own:
    /// credentials end sooner than sessions, and traces and tenants change between two requests.
    fn line(&self, now: &HttpLine) -> Arc<dyn Line> {
        match &self.line {
            Opened::Http(line) => {
                let mut line = line.lock();
                *line = line.said_as(now);
                Arc::new(line.clone())
            }
            Opened::Lines(session) => session.line(),
        }
    }

    /// Tells the server that it has ended. One with a stream notices that by itself.
    async fn end(&self) {
        if let Opened::Http(line) = &self.line {
            let line = line.lock().clone();
            line.end().await;
        }
    }
}

/// Opens sessions for one client.
pub(crate) trait Opener: fmt::Debug + Send + Sync + 'static {
    /// Opens one for a client with these capabilities.
    fn open<'a>(&'a self, capabilities: &'a str) -> BoxFuture<'a, Result<ServerSession, NoSession>>;
}

impl Opener for HttpLine {
    fn open<'a>(&'a self, capabilities: &'a str) -> BoxFuture<'a, Result<ServerSession, NoSession>> {
        Box::pin(open(self, capabilities))
    }
}

/// The use of a session. When it is dropped, the session is for the next one, or ends.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
    session: Arc<ServerSession>,
    /// Whether nobody uses it afterwards.
    is_last: bool,
}

/// The sessions of the client that comes by one line.
#[derive(Debug)]
pub(crate) struct Seats {
    pub(crate) pool: Arc<Pool>,
    pub(crate) eras: Arc<Eras>,
    pub(crate) line: HttpLine,
    /// What opens the sessions.
    pub(crate) opener: Arc<dyn Opener>,
}

impl Hosts for Seats {
    fn seat<'a>(&'a self, capabilities: &'a str, sharing: Sharing) -> BoxFuture<'a, Result<Seat, NoSession>> {
        Box::pin(async move {
            let leased = self.pool.lease(self, capabilities, sharing != Sharing::Shared).await;
            if let Err(NoSession::Refused(_) | NoSession::Lost(Lost::Refused(_))) = &leased {
                // A server of sessions would have agreed.
                self.eras.forget();
            }
            let mut lease = leased?;
            lease.is_last = sharing == Sharing::OnlyOnce;
            let line = lease.session.line(&self.line);
            let agreed = Arc::clone(&lease.session.agreed);
            Ok(Seat { line, agreed, held: Some(lease) })
        })
    }

    fn has_own_sessions(&self) -> bool {
        true
    }
}

impl Pool {
    /// A session for a client. An exclusive one has no other user meanwhile.
    async fn lease(
        self: &Arc<Self>,
        seats: &Seats,
        capabilities: &str,
        is_exclusive: bool,
    ) -> Result<Lease, NoSession> {
        let purpose = Purpose { principal: Principal::of(&seats.line), capabilities: capabilities.to_owned() };
        let is_exclusive = is_exclusive || !purpose.principal.is_known();
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        let turn = {
            let mut opening = self.opening.lock();
            opening.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(opening.entry(purpose.clone()).or_default())
        };
        // Held across the handshake on purpose: whoever waits here finds the session open.
        let _turn = if is_exclusive { None } else { Some(turn.lock().await) };
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        self.make_room(&purpose.principal)?;
        let session = Arc::new(seats.opener.open(capabilities).await?);
        let now = Instant::now();
        let lease = Lease { pool: Arc::clone(self), session: Arc::clone(&session), is_last: false };
        self.sessions.lock().push(Entry { session, purpose, users: 1, is_exclusive, opened: now, used: now });
        Ok(lease)
    }

    /// A session that is open already.
    fn take(self: &Arc<Self>, purpose: &Purpose, is_exclusive: bool) -> Option<Lease> {
        let mut sessions = self.sessions.lock();
        let is_free =
            |entry: &Entry| if is_exclusive { entry.users == 0 } else { entry.users == 0 || !entry.is_exclusive };
        let entry = sessions.iter_mut().find(|entry| {
            entry.purpose == *purpose
                && purpose.principal.is_known()
                && entry.opened.elapsed() < OLDEST
                && is_free(entry)
        })?;
        entry.users += 1;
        entry.is_exclusive = is_exclusive;
        Some(Lease { pool: Arc::clone(self), session: Arc::clone(&entry.session), is_last: false })
    }

    /// Ends sessions that nobody uses, if there are too many.
    fn make_room(&self, principal: &Principal) -> Result<(), NoSession> {
        let mut sessions = self.sessions.lock();
        let own = |entry: &Entry| entry.purpose.principal == *principal && principal.is_known();
        while sessions.len() >= ALL || sessions.iter().filter(|entry| own(entry)).count() >= PER_CLIENT {
            let is_own_full = sessions.iter().filter(|entry| own(entry)).count() >= PER_CLIENT;
            let unused =
                sessions.iter().enumerate().filter(|(_, entry)| entry.users == 0 && (!is_own_full || own(entry)));
            let Some((index, _)) = unused.min_by_key(|(_, entry)| entry.used) else { return Err(NoSession::Full) };
            let entry = sessions.swap_remove(index);
            self.end(entry.session);
        }
        Ok(())
    }

    /// Ends the sessions that were not used for too long.
    pub(crate) fn sweep(&self) {
        let mut sessions = self.sessions.lock();
        let is_over =
            |entry: &Entry| entry.users == 0 && (entry.used.elapsed() > IDLE || entry.opened.elapsed() > OLDEST);
        let (over, kept) = std::mem::take(&mut *sessions).into_iter().partition(is_over);
        *sessions = kept;
        drop(sessions);
        let over: Vec<Entry> = over;
        for entry in over {
            self.end(entry.session);
        }
    }

    /// Ends all sessions, and waits until the server was told.
    pub(crate) async fn close(&self) {
        for entry in std::mem::take(&mut *self.sessions.lock()) {
            self.end(entry.session);
        }
        let mut farewells = std::mem::take(&mut *self.farewells.lock());
        while farewells.join_next().await.is_some() {}
    }

    fn end(&self, session: Arc<ServerSession>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut farewells = self.farewells.lock();
            while farewells.try_join_next().is_some() {}
            let farewell = async move {
                let _ = tokio::time::timeout(FAREWELL, session.end()).await;
            };
            farewells.spawn_on(farewell, &runtime);
        }
    }
}

impl Lease {
    /// The server does not know the session any more.
    pub(crate) fn lost(self) {
        self.pool.sessions.lock().retain(|entry| !Arc::ptr_eq(&entry.session, &self.session));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock();
        let Some(index) = sessions.iter().position(|entry| Arc::ptr_eq(&entry.session, &self.session)) else { return };
        let Some(entry) = sessions.get_mut(index) else { return };
        entry.users -= 1;
        entry.used = Instant::now();
        // A session whose client cannot be told from others is not for the next one.
        if entry.users == 0 && (self.is_last || !entry.purpose.principal.is_known()) {
            let entry = sessions.swap_remove(index);
            drop(sessions);
            self.pool.end(entry.session);
        }
    }
}

/// Makes the handshake.
async fn open(line: &HttpLine, capabilities: &str) -> Result<ServerSession, NoSession> {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let client = json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")});
    let version = Revision::NEWEST_WITH_HANDSHAKE.text();
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
    let request = line::request(method::INITIALIZE, &params);
    let shaken = async {
        let (session, mut replies) = line.legacy().shake_hands(&request).await.map_err(NoSession::Lost)?;
        let mut answer: Option<Message> = None;
        while let Some(message) = replies.next().await {
            answer = Some(message).filter(|message| message.kind() == Kind::Response);
        }
        let answer = answer.ok_or_else(|| NoSession::Refused("it does not answer the handshake".to_owned()))?;
        let Some(result) = answer.result() else {
            return Err(NoSession::Refused(answer.error().unwrap_or_default().to_owned()));
        };
        let told = json::find(result, &["protocolVersion"]).ok().flatten().map(|place| place.of(result));
        let told = told.and_then(json::decode).unwrap_or_default();
        let Some(revision) = Revision::parse(&told).filter(|revision| !revision.is_stateless()) else {
            return Err(NoSession::Refused(format!("it answers the handshake with revision {told:?}")));
        };
        let line = line.within(session, revision);
        let initialized = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method::INITIALIZED);
        line.tell(initialized.into()).await;
        Ok(ServerSession { line: Opened::Http(Box::new(Mutex::new(line))), agreed: result.into() })
    };
    tokio::time::timeout(HANDSHAKE, shaken).await.unwrap_or(Err(NoSession::Lost(Lost::TimedOut)))
}
