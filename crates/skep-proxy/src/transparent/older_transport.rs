//! Clients of HTTP+SSE before a server that speaks streamable HTTP.

use std::sync::Arc;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, StatusCode};

use super::target::{Dialect, join};
use super::{Transparent, tasks};
use crate::answer::Answer;
use crate::eras::dialled::Credentials;
use crate::listener::Peer;
use crate::middleware::Exchange;
use crate::sessions::{Owner, Whose};
use crate::stdio::{Paths, Sse};

/// Where HTTP+SSE is, where nobody says otherwise, and where streamable HTTP is.
const STREAM: &str = "/sse";
const STREAMABLE: PathAndQuery = PathAndQuery::from_static("/mcp");

impl Transparent {
    fn older(&self) -> Sse {
        let (bridge, forwarded) = (Arc::clone(&self.dialled.bridge), self.forwarded.clone());
        Sse { bridge, forwarded, paths: Paths::SHARED }
    }

    /// Whether a request opens a stream that the server does not have: a client of HTTP+SSE has nothing else to begin with,
    /// and one of streamable HTTP has a session before.
    pub(super) fn opens_older(&self, parts: &Parts) -> bool {
        self.target.dialect == Dialect::Streamable && parts.method == Method::GET && Paths::is_opening(&parts.headers)
    }

    /// Whether a server answers so that has no such stream.
    pub(super) fn has_no_stream(status: StatusCode) -> bool {
        matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
        )
    }

    /// Opens a stream of ours instead, and a session behind it.
    pub(super) async fn open_older(&self, peer: Peer, parts: &Parts) -> Result<Answer, Answer> {
        if let Some(stream) = self.dialled.found() {
            self.dialled.lose(&stream);
        }
        let mut line = self.line(peer, parts)?;
        if parts.uri.path() == STREAM
            && !self.target.is_remote
            && let Some(uri) = join(&self.target.origin(), &STREAMABLE)
        {
            line = line.towards(uri);
        }
        let credentials = Credentials::new(line.headers().clone(), parts.extensions.get().cloned());
        let connector = self.dialled.streamable(&Whose::of(parts, peer), line, &credentials);
        let connector = connector.map_err(|problem| problem.answer(None))?;
        let (answer, session) = self.older().open_over(connector, peer.scheme, parts).await?;
        self.dialled.remember(&session, &credentials);
        Ok(answer)
    }

    /// The session of ours that a message names in its address.
    pub(super) fn older_session(&self, parts: &Parts) -> Option<Arc<str>> {
        let id = Paths::SHARED.session(&parts.uri)?;
        let is_ours = parts.method == Method::POST && self.dialled.bridge.holds(id);
        is_ours.then(|| id.into())
    }

    /// Takes a message of such a session.
    pub(super) async fn serve_older(
        &self,
        session: Arc<str>,
        mut exchange: Box<Exchange<'_>>,
    ) -> Result<Answer, Answer> {
        exchange.receive().await?;
        exchange.parsed()?;
        if let Some(payload) = exchange.known() {
            tasks::refuse(StatusCode::BAD_REQUEST, &exchange.parts, payload)?;
        }
        let parts = &exchange.parts;
        if self.dialled.bridge.has_session(&session, Owner::of(parts)).await? {
            let headers = self.line(exchange.peer, parts)?.headers().clone();
            self.dialled.renew(&session, headers, parts.extensions.get().cloned());
        }
        Ok(self.older().post(exchange.into_request()).await)
    }
}
