//! Sessions whose server was replaced: the handshake is made again, and the client does not notice.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use skep_mcp::{header, method};

use super::Transparent;
use super::keeping::{BACKEND_SESSION, BACKEND_URL, INIT_BODY};
use super::target::join;
use super::upstream::{Outgoing, peer_origin};
use crate::sessions::{Metadata, Session, Unavailable};

impl Transparent {
    /// Makes the handshake of a session again with the server that is there now. Gives the session as it is then, or
    /// nothing when that was of no use.
    pub(super) async fn recover(
        &self,
        before: &Session,
        request: &Outgoing,
    ) -> Result<Option<Arc<Session>>, Unavailable> {
        let turn = self.turns.of(&before.id);
        // Held across the handshake on purpose: whoever waits here finds it made.
        let _turn = turn.come().await;
        let Some(now) = self.sessions.get(&before.id).await? else { return Ok(None) };
        if now.metadata != before.metadata {
            return Ok(Some(now));
        }
        let renewed = match before.metadata.get(INIT_BODY) {
            Some(body) => self.shake_hands(body.clone().into(), request).await,
            None => None,
        };
        let learn = |metadata: &mut Metadata| match &renewed {
            Some((origin, session)) => {
                metadata.insert(BACKEND_URL.to_owned(), origin.clone());
                metadata.insert(BACKEND_SESSION.to_owned(), session.clone());
            }
            None => {
                metadata.insert(BACKEND_URL.to_owned(), self.target.origin());
            }
        };
        self.sessions.update(&before.id, learn).await?;
        if renewed.is_some() { self.sessions.get(&before.id).await } else { Ok(None) }
    }

    /// A handshake in the words that the client used. Gives the server that answered and its session.
    async fn shake_hands(&self, body: Bytes, request: &Outgoing) -> Option<(String, String)> {
        let mut headers = request.headers.clone();
        for name in [header::SESSION_ID, header::LAST_EVENT_ID] {
            headers.remove(name);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let post = |uri, headers: &HeaderMap, body| {
            let signer = request.signer.clone();
            Outgoing { method: Method::POST, uri, headers: headers.clone(), body, signer }
        };
        let uri = self.target.at(request.uri.path_and_query()?.clone())?;
        let response = self.upstream.send_once(&post(uri, &headers, body)).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let session = response.headers().get(header::SESSION_ID)?.clone();
        let origin = peer_origin(&self.target, response.extensions());
        drop(response);
        headers.insert(header::SESSION_ID, session.clone());
        let initialized = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method::INITIALIZED);
        let uri = join(&origin, request.uri.path_and_query()?)?;
        self.upstream.send_once(&post(uri, &headers, initialized.into())).await.ok()?;
        Some((origin, session.to_str().ok()?.to_owned()))
    }
}
