//! Servers on another transport than their client's: each session has a connection of its own.
//!
//! On HTTP+SSE messages are not tied to requests, like on standard input and output. So where one side speaks it and the
//! other one speaks streamable HTTP, it is the [`Bridge`] that knows whose they are.

mod sse;
mod streamable;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::{Revision, method};
use tokio_util::sync::CancellationToken;

use self::sse::SseServer;
use self::streamable::StreamableServer;
use super::http::HttpLine;
use super::line::{self, Lost, NoSession, is_away};
use super::own_name;
use super::room::Room;
use super::server_session::{Opener, ServerSession};
use crate::budget::Allowance;
use crate::limits::Limits;
use crate::middleware::aws_sts::Signer;
use crate::sessions::Whose;
use crate::stdio::{Bridge, Connector};
use crate::transparent::upstream::{Outgoing, Upstream};

/// Sessions at the same time, and those of one client.
const ALL: usize = 1024;
const PER_CLIENT: usize = 256;
/// Bytes between the bridge and a server that are under way.
const BUFFER: usize = 64 << 10;

/// As whom a server is talked to. What a client proves itself with may change while its session lasts.
#[derive(Debug)]
pub(crate) struct Credentials {
    now: Mutex<(HeaderMap, Option<Signer>)>,
    /// Where they are found by the name of the session, until it ends.
    found: OnceLock<(Weak<Known>, Box<str>)>,
}

/// As whom the sessions of clients talk to the server.
type Known = Mutex<HashMap<Box<str>, Weak<Credentials>>>;

impl Credentials {
    pub(crate) fn new(headers: HeaderMap, signer: Option<Signer>) -> Arc<Self> {
        Arc::new(Self { now: Mutex::new((headers, signer)), found: OnceLock::new() })
    }

    /// What the client proves itself with from now on.
    pub(super) fn renew(&self, headers: HeaderMap, signer: Option<Signer>) {
        *self.now.lock() = (headers, signer);
    }

    fn outgoing(&self, method: Method, uri: Uri, body: Bytes) -> Outgoing {
        let (headers, signer) = self.now.lock().clone();
        Outgoing { method, uri, headers, body, signer }
    }

    /// A line as whoever the client is now.
    fn on(&self, line: &HttpLine) -> HttpLine {
        let (headers, signer) = self.now.lock().clone();
        line.renewed(headers, signer)
    }
}

impl Drop for Credentials {
    fn drop(&mut self) {
        if let Some((known, session)) = self.found.take()
            && let Some(known) = known.upgrade()
        {
            known.lock().remove(&session);
        }
    }
}

/// All sessions at one server.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) bridge: Arc<Bridge>,
    known: Arc<Known>,
    room: Arc<Room>,
    /// Where the stream of the server is, if that was found out though nobody says that it has one.
    found: ArcSwapOption<Uri>,
    upstream: Upstream,
    allowance: Allowance,
}

impl Dialled {
    pub(crate) fn new(upstream: &Upstream, limits: &Limits) -> Arc<Self> {
        // A request to a server that speaks HTTP takes as long as it takes.
        let patient = Limits { request: limits.session, ..limits.clone() };
        Arc::new(Self {
            bridge: Bridge::of_connections(patient),
            known: Arc::default(),
            room: Room::new(ALL, PER_CLIENT),
            found: ArcSwapOption::empty(),
            upstream: upstream.clone(),
            allowance: limits.answers(),
        })
    }

    /// Opens a stream of HTTP+SSE at an address, for somebody.
    pub(crate) async fn connect(
        &self,
        whose: &Whose,
        stream: Uri,
        credentials: &Arc<Credentials>,
    ) -> Result<Box<dyn Connector>, NoSession> {
        let place = self.room.take(whose)?;
        let server = SseServer {
            upstream: self.upstream.clone(),
            stream,
            credentials: Arc::clone(credentials),
            allowance: self.allowance.clone(),
            opened: Mutex::default(),
            _place: place,
        };
        let opened = server.open().await.map_err(|lost| {
            if let Lost::Refused(answer) = &lost
                && !lost.is_challenge()
                && !is_away(answer.status())
            {
                self.lose(&server.stream);
            }
            NoSession::Lost(lost)
        })?;
        *server.opened.lock() = Some(opened);
        Ok(Box::new(server))
    }

    /// Where the stream of the server was found.
    pub(crate) fn found(&self) -> Option<Arc<Uri>> {
        self.found.load_full()
    }

    /// Looks for a stream of the server at an address, as somebody.
    pub(crate) async fn find(&self, whose: &Whose, stream: &Uri, credentials: &Arc<Credentials>) -> bool {
        let is_there = self.connect(whose, stream.clone(), credentials).await.is_ok();
        if is_there {
            self.found.store(Some(Arc::new(stream.clone())));
        }
        is_there
    }

    /// There is no stream any more where one was found, so that the server is another one.
    pub(crate) fn lose(&self, stream: &Uri) {
        if self.found().is_some_and(|found| *found == *stream) {
            tracing::info!("the MCP server does not speak HTTP+SSE any more");
            self.found.store(None);
        }
    }

    /// A server on streamable HTTP, reached by this line, for somebody.
    pub(crate) fn streamable(
        &self,
        whose: &Whose,
        line: HttpLine,
        credentials: &Arc<Credentials>,
    ) -> Result<Box<dyn Connector>, NoSession> {
        let place = self.room.take(whose)?;
        let credentials = Arc::clone(credentials);
        let denied = CancellationToken::new();
        Ok(Box::new(StreamableServer { line, credentials, largest: self.allowance.largest, denied, _place: place }))
    }

    /// Remembers as whom the session of a client talks to the server.
    pub(crate) fn remember(&self, session: &str, credentials: &Arc<Credentials>) {
        if credentials.found.set((Arc::downgrade(&self.known), session.into())).is_ok() {
            self.known.lock().insert(session.into(), Arc::downgrade(credentials));
        }
    }

    /// What the client of a session proves itself with from now on.
    pub(crate) fn renew(&self, session: &str, headers: HeaderMap, signer: Option<Signer>) {
        let credentials = self.known.lock().get(session).and_then(Weak::upgrade);
        if let Some(credentials) = credentials {
            credentials.renew(headers, signer);
        }
    }
}

/// Opens sessions at a server on HTTP+SSE for one client without any.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) dialled: Arc<Dialled>,
    /// Whose the sessions are.
    pub(crate) whose: Whose,
    /// Where the stream of the server is.
    pub(crate) stream: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) signer: Option<Signer>,
}

impl Opener for Dial {
    fn open<'a>(&'a self, capabilities: &'a str) -> BoxFuture<'a, Result<ServerSession, NoSession>> {
        Box::pin(async move {
            let credentials = Credentials::new(self.headers.clone(), self.signer.clone());
            let connector = self.dialled.connect(&self.whose, self.stream.clone(), &credentials).await?;
            let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
            let client: Value = serde_json::from_str(&own_name()).unwrap_or_default();
            let version = Revision::NEWEST_WITH_HANDSHAKE.text();
            let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
            let offer = line::request(method::INITIALIZE, &params);
            let session = self.dialled.bridge.open_line(connector, &offer).await?;
            if session.agreed().is_none_or(Revision::is_stateless) {
                let told = format!("it answers the handshake with {}", session.told());
                return Err(NoSession::Refused(told));
            }
            Ok(ServerSession::of_lines(session, credentials))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transparent::{Dialect, Target};

    #[test]
    fn nothing_is_kept_of_a_session_that_has_ended() {
        let limits = Limits::default();
        let target = Target::local(Dialect::Sse, "http://127.0.0.1:9").unwrap();
        let dialled = Dialled::new(&Upstream::new(&target, &limits).unwrap(), &limits);
        let [first, second] = [(); 2].map(|()| Credentials::new(HeaderMap::new(), None));
        dialled.remember("a", &first);
        dialled.remember("b", &second);
        drop(first);
        assert_eq!(dialled.known.lock().keys().map(AsRef::as_ref).collect::<Vec<&str>>(), ["b"]);
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, http::HeaderValue::from_static("fresh"))]);
        dialled.renew("b", headers.clone(), None);
        assert_eq!(second.now.lock().0, headers);
    }
}
