//! Clients of streamable HTTP before a server that speaks HTTP+SSE.

use std::sync::Arc;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode};
use skep_mcp::{Kind, Message, Payload, header, method};

use super::target::{Dialect, join};
use super::{Transparent, tasks};
use crate::answer::{self, Answer};
use crate::eras::dialled::{Credentials, Dial};
use crate::intake::{self, Accepts};
use crate::listener::Peer;
use crate::middleware::Exchange;
use crate::sessions::{Owner, Whose};
use crate::stdio::Streamable;
use crate::upload::{Sent, Upload};

/// Where streamable HTTP is, where nobody says otherwise, and where HTTP+SSE is.
pub(super) const STREAMABLE: &str = "/mcp";
pub(super) const STREAM: PathAndQuery = PathAndQuery::from_static("/sse");

impl Transparent {
    /// Whether a request is one of streamable HTTP, before a server that does not speak that. Its clients take events as
    /// answers, and name their sessions in a header and not in the address.
    pub(super) fn is_streamable(&self, parts: &Parts) -> bool {
        let headers = &parts.headers;
        let is_post = || {
            parts.method == Method::POST
                && parts.uri.query().is_none()
                && !intake::is_modern(headers)
                && Accepts::read(headers).is_ok_and(|accepts| accepts.events)
        };
        self.dialect() == Dialect::Sse
            && (headers.contains_key(header::SESSION_ID) && !intake::is_modern(headers) || is_post())
    }

    /// Answers such a request.
    pub(super) async fn serve_streamable(&self, exchange: Box<Exchange<'_>>) -> Result<Answer, Answer> {
        let dialled = &self.dialled;
        if let Some(reason) = self.readiness.reason() {
            return Err(answer::not_ready(&reason));
        }
        let peer = exchange.peer;
        let (parts, body) = exchange.into_request().into_parts();
        let named = intake::session(&parts.headers)?;
        if let Some(id) = named
            && dialled.bridge.has_session(id, Owner::of(&parts)).await?
        {
            let headers = self.line(peer, &parts)?.headers().clone();
            dialled.renew(id, headers, parts.extensions.get().cloned());
        }
        let mut sent = Sent::default();
        if parts.method == Method::POST {
            sent = body.read(&self.limits).await?;
            let payload = Sent { text: sent.text.clone(), payload: sent.payload }.payload();
            let payload = payload.map_err(|error| answer::unreadable(&error))?;
            tasks::refuse(StatusCode::OK, &parts, &payload)?;
            if let Payload::Single(message) = &payload
                && message.method() == method::INITIALIZE
                && message.kind() == Kind::Request
            {
                intake::require_json(&parts.headers)?;
                return self.open_dialled(peer, &parts, message).await;
            }
            if named.is_none() {
                let told =
                    "the MCP server has sessions only: begin with initialize, and name the session in Mcp-Session-Id";
                return Err(answer::text(StatusCode::BAD_REQUEST, told));
            }
            sent = Sent { text: sent.text, payload: Some(payload) };
        }
        let streamable = Streamable(Arc::clone(&dialled.bridge));
        Ok(streamable.serve(Request::from_parts(parts, Upload::Read(sent))).await)
    }

    /// Begins a session with this handshake.
    pub(super) async fn open_dialled(&self, peer: Peer, parts: &Parts, handshake: &Message) -> Result<Answer, Answer> {
        let (dial, dialled) = (self.dial(peer, parts)?, &self.dialled);
        let credentials = Credentials::new(dial.headers, dial.signer);
        let connector = dialled.connect(&dial.whose, dial.stream, &credentials).await;
        let connector = connector.map_err(|problem| {
            if self.dialect() == Dialect::Sse {
                return problem.answer(handshake.owned_id().as_ref());
            }
            answer::not_ready("the MCP server has been replaced by one that speaks something else; begin again")
        })?;
        let answer = Streamable(Arc::clone(&dialled.bridge)).open(connector, parts, handshake).await?;
        if let Some(id) = answer.headers().get(header::SESSION_ID).and_then(|id| id.to_str().ok()) {
            dialled.remember(id, &credentials);
            self.served.cancel();
        }
        Ok(answer)
    }

    /// What opens sessions for the client of a request.
    pub(super) fn dial(&self, peer: Peer, parts: &Parts) -> Result<Dial, Answer> {
        let bad = || answer::text(StatusCode::BAD_REQUEST, "the address cannot be passed on");
        let path = self.target.path_and_query(self.dialect(), &Method::GET, &parts.uri).ok_or_else(bad)?;
        // A server of ours has no other path than the client's, and the client's may be that of the other transport.
        let path = if path.path() == STREAMABLE && !self.target.is_remote { STREAM } else { path };
        let stream = match self.dialled.found() {
            Some(stream) => stream.as_ref().clone(),
            None => join(&self.target.origin(), &path).ok_or_else(bad)?,
        };
        let headers = self.line(peer, parts)?.headers().clone();
        let (dialled, whose) = (Arc::clone(&self.dialled), Whose::of(parts, peer));
        Ok(Dial { dialled, whose, stream, headers, signer: parts.extensions.get().cloned() })
    }
}
