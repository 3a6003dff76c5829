//! What is known about sessions that servers begin, and where each of them is.

use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode};
use skep_mcp::era::Era;
use skep_mcp::{Revision, header};

use super::look::Known;
use super::upstream::{Outgoing, peer_origin};
use super::{Transparent, target, tasks};
use crate::sessions::{Kind, Session, Unavailable};

/// The server that a session is at.
pub(super) const BACKEND_URL: &str = "backend_url";
/// The body of its handshake.
pub(super) const INIT_BODY: &str = "init_body";
/// What the server knows it by, when that is not what the client knows it by.
pub(super) const BACKEND_SESSION: &str = "backend_sid";

/// Where its handshake was made, at the server.
const PATH: &str = "path";

/// Larger handshakes are not kept, and their sessions end with their servers: anybody can begin many of them.
const LARGEST_HANDSHAKE: usize = 64 << 10;

impl Transparent {
    /// Learns about sessions from what passes.
    pub(super) async fn keep_session(
        &self,
        response: &http::response::Parts,
        outgoing: &Outgoing,
        known: &Known,
    ) -> Result<(), Unavailable> {
        if let Some(session) = &known.session
            && outgoing.method == Method::DELETE
            && (response.status.is_success() || response.status == StatusCode::NOT_FOUND)
        {
            self.sessions.delete(&session.id).await?;
            return Ok(());
        }
        if known.era == Some(Era::Modern) {
            // What stands alone begins no session, whatever its server says.
            return Ok(());
        }
        let id = response.headers.get(header::SESSION_ID).and_then(|id| id.to_str().ok());
        let is_new = known.session.is_none() || known.handshake.is_some();
        if let Some(id) = id.filter(|_| response.status == StatusCode::OK && is_new) {
            let revision = known.handshake.unwrap_or(Revision::ASSUMED);
            let mut session = Session::new(id, Kind::Transparent, revision, known.caller.as_ref());
            session.metadata.insert(BACKEND_URL.to_owned(), peer_origin(&self.target, &response.extensions));
            if known.handshake.is_some() {
                session.metadata.insert(PATH.to_owned(), outgoing.uri.path().to_owned());
            }
            if known.handshake.is_some() && known.body.len() <= LARGEST_HANDSHAKE {
                session.metadata.insert(INIT_BODY.to_owned(), String::from_utf8_lossy(&known.body).into_owned());
            }
            if let Some(between) = known.between {
                between.mark(&mut session);
            }
            if known.has_tasks && known.caller.is_some() {
                tasks::mark(&mut session);
            }
            // What ends for it needs nothing more.
            self.sessions.create(session.at(known.address), |id| self.is_open(id)).await?;
        }
        Ok(())
    }
}

impl Outgoing {
    /// Whether it goes where its session began.
    pub(super) fn is_within(&self, session: Option<&Arc<Session>>) -> bool {
        session.and_then(|session| session.metadata.get(PATH)).is_some_and(|path| path == self.uri.path())
    }

    /// Points a request at the server of its session.
    pub(super) fn aim(&mut self, session: &Session) {
        let origin = session.metadata.get(BACKEND_URL).filter(|origin| !target::is_at(&self.uri, origin));
        let uri = origin.zip(self.uri.path_and_query()).and_then(|(origin, path)| target::join(origin, path));
        if let Some(uri) = uri {
            self.uri = uri;
        }
        let id = session.metadata.get(BACKEND_SESSION).and_then(|id| HeaderValue::from_str(id).ok());
        if let Some(id) = id.filter(|_| self.headers.contains_key(header::SESSION_ID)) {
            self.headers.insert(header::SESSION_ID, id);
        }
    }
}
