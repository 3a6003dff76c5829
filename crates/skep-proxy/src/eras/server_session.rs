//! A session at a server, and how it is opened for a client that has none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::{Kind, Message, Revision, json, method};

use super::dialled::Credentials;
use super::http::HttpLine;
use super::line::{self, Line, Lost, NoSession};
use crate::stdio::LineSession;

/// How long a server may take for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A session at a server.
#[derive(Debug)]
pub(crate) struct ServerSession {
    line: Opened,
    /// What the server answered to the handshake: its result.
    pub(super) agreed: Arc<str>,
}

#[derive(Debug)]
enum Opened {
    /// As its client talked to it last, which is how it is ended, too.
    Http(Box<Mutex<HttpLine>>),
    /// One whose connection talks as its client did last.
    Lines(LineSession, Arc<Credentials>),
}

impl ServerSession {
    /// A session with a server that is talked to on a line within it.
    pub(super) fn of_http(line: HttpLine, agreed: &str) -> Self {
        Self { line: Opened::Http(Box::new(Mutex::new(line))), agreed: agreed.into() }
    }

    /// A session with a server that is talked to in lines, as whoever has these credentials.
    pub(super) fn of_lines(session: LineSession, credentials: Arc<Credentials>) -> Self {
        Self { agreed: Arc::clone(session.told()), line: Opened::Lines(session, credentials) }
    }

    /// The way to the server, for a client that comes by this line now. What is said with a request is its own:
    /// credentials end sooner than sessions, and traces change between two requests.
    pub(super) fn line(&self, now: &HttpLine) -> Arc<dyn Line> {
        match &self.line {
            Opened::Http(line) => {
                let mut line = line.lock();
                *line = line.said_as(now);
                Arc::new(line.clone())
            }
            Opened::Lines(session, credentials) => {
                credentials.renew(now.headers().clone(), now.signer().cloned());
                session.line()
            }
        }
    }

    /// Tells the server that it has ended. One with a stream notices that by itself.
    pub(super) async fn end(&self) {
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

/// A session that the server has opened, and that is not used yet. When nobody comes to use it, the server is told.
struct Unused(Option<HttpLine>);

impl Unused {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        if let (Some(line), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { line.end().await });
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
        let unused = Unused(Some(line.within(session.clone(), Revision::NEWEST_WITH_HANDSHAKE)));
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
        unused.keep();
        Ok(ServerSession::of_http(line, result))
    };
    tokio::time::timeout(HANDSHAKE, shaken).await.unwrap_or(Err(NoSession::Lost(Lost::TimedOut)))
}
