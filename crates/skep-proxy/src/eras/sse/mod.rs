//! Servers that are reached by HTTP+SSE, for clients that do not speak it: each session has a stream of its own.
//!
//! Such a server is talked to in messages that are not tied to requests, like one on standard input and output. So it is
//! the [`Bridge`] that knows whose they are.

mod server;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use http::{HeaderMap, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::{Revision, method};
use tokio::sync::Semaphore;

pub(crate) use self::server::Credentials;
use self::server::SseServer;
use super::line::{self, Lost, NoSession};
use super::own_name;
use super::pool::{Opener, ServerSession};
use crate::limits::Limits;
use crate::middleware::aws_sts::Signer;
use crate::stdio::{Bridge, Connector};
use crate::transparent::upstream::Upstream;

/// Sessions at the same time.
const ALL: usize = 1024;

/// All sessions at one server.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) bridge: Arc<Bridge>,
    /// As whom the sessions of clients talk to the server.
    credentials: Mutex<HashMap<Box<str>, Weak<Credentials>>>,
    room: Arc<Semaphore>,
    upstream: Upstream,
    largest: usize,
}

impl Dialled {
    pub(crate) fn new(upstream: &Upstream, limits: &Limits) -> Arc<Self> {
        // A request to a server that speaks HTTP takes as long as it takes.
        let patient = Limits { request: limits.session, ..limits.clone() };
        Arc::new(Self {
            bridge: Bridge::of_connections(patient),
            credentials: Mutex::default(),
            room: Arc::new(Semaphore::new(ALL)),
            upstream: upstream.clone(),
            largest: limits.line_bytes,
        })
    }

    /// Opens a stream at an address.
    pub(crate) async fn connect(
        &self,
        stream: Uri,
        credentials: &Arc<Credentials>,
    ) -> Result<Box<dyn Connector>, NoSession> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| NoSession::Full)?;
        let server = SseServer {
            upstream: self.upstream.clone(),
            stream,
            credentials: Arc::clone(credentials),
            largest: self.largest,
            opened: Mutex::default(),
            _room: room,
        };
        let opened = server.open().await.map_err(NoSession::Lost)?;
        *server.opened.lock() = Some(opened);
        Ok(Box::new(server))
    }

    /// Remembers as whom the session of a client talks to the server.
    pub(crate) fn remember(&self, session: &str, credentials: &Arc<Credentials>) {
        let mut known = self.credentials.lock();
        known.retain(|_, credentials| credentials.strong_count() > 0);
        known.insert(session.into(), Arc::downgrade(credentials));
    }

    /// What the client of a session proves itself with from now on.
    pub(crate) fn renew(&self, session: &str, headers: HeaderMap, signer: Option<Signer>) {
        let credentials = self.credentials.lock().get(session).and_then(Weak::upgrade);
        if let Some(credentials) = credentials {
            credentials.renew(headers, signer);
        }
    }
}

/// Opens sessions for one client without any.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) dialled: Arc<Dialled>,
    /// Where the stream of the server is.
    pub(crate) stream: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) signer: Option<Signer>,
}

impl Opener for Dial {
    fn open<'a>(&'a self, capabilities: &'a str) -> BoxFuture<'a, Result<ServerSession, NoSession>> {
        Box::pin(async move {
            let credentials = Credentials::new(self.headers.clone(), self.signer.clone());
            let connector = self.dialled.connect(self.stream.clone(), &credentials).await?;
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
            Ok(ServerSession::of_lines(session))
        })
    }
}

impl From<Lost> for NoSession {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}
