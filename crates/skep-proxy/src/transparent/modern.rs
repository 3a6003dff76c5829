//! Clients whose requests stand alone, before a server of either era.

use std::sync::Arc;

use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use skep_mcp::{Kind, Message};

use super::Transparent;
use super::bridged::HANDSHAKE_BYTES;
use super::look::Known;
use super::target::Dialect;
use super::upstream::FromServer;
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::eras::http::HttpLine;
use crate::eras::line::Unbegun;
use crate::eras::modern_client::ModernClient;
use crate::eras::parking;
use crate::eras::pool::Seats;
use crate::eras::server_session::Opener;
use crate::eras::verdict::{self, Verdict};
use crate::intake::{self, Accepts};
use crate::listener::Peer;
use crate::middleware::AsSent;
use crate::sessions::Whose;

impl Transparent {
    /// Answers a request that stands alone, if the server has sessions only. Otherwise it is made ready to be passed on.
    pub(super) async fn serve_modern_client(
        &self,
        peer: Peer,
        parts: &Parts,
        message: Message,
        known: &mut Known,
    ) -> Result<Option<Answer>, Answer> {
        let eras = &self.bridging.eras;
        if message.kind() != Kind::Request {
            // Without a session there is nothing that a notification could be about.
            let is_for_nobody = self.dialect() == Dialect::Sse || eras.known() == Some(Verdict::Legacy);
            return Ok(is_for_nobody.then(|| answer::empty(StatusCode::ACCEPTED)));
        }
        let checked = self.bridging.mirrors.check(&parts.headers, AsSent::of(parts, &message));
        checked.map_err(|fault| answer::bad(&fault, message.owned_id().as_ref()))?;
        let line = self.line(peer, parts)?;
        if self.dialect() == Dialect::Sse {
            // Its transport belongs to one era only.
            let opener = Arc::new(self.dial(peer, parts)?);
            let answer = self.open_and_serve(peer, line.clone(), opener, parts, message.clone()).await?;
            if self.dialect() == Dialect::Sse || answer.extensions().get::<Unbegun>().is_none() {
                return Ok(Some(answer));
            }
            // Another server has taken its place, which has not seen the request yet.
        }
        let unknown = |unknown: verdict::Unknown| unknown.answer(message.owned_id().as_ref());
        if eras.verdict(&line).await.map_err(unknown)? == Verdict::Legacy {
            let answer =
                self.open_and_serve(peer, line.clone(), Arc::new(line.clone()), parts, message.clone()).await?;
            if answer.extensions().get::<Unbegun>().is_none() {
                return Ok(Some(answer));
            }
            // A server of sessions would have opened one. It has not seen the request yet.
            if !matches!(eras.verdict(&line).await, Ok(Verdict::Modern)) {
                return self.serve_unopened(peer, parts, line, message, answer).await.map(Some);
            }
        }
        self.stand_alone(parts, message, known).await?;
        Ok(None)
    }

    /// Answers a request that stands alone by a session at the server.
    pub(super) async fn open_and_serve(
        &self,
        peer: Peer,
        line: HttpLine,
        opener: Arc<dyn Opener>,
        parts: &Parts,
        message: Message,
    ) -> Result<Answer, Answer> {
        intake::require_json(&parts.headers)?;
        let accepts = Accepts::read(&parts.headers)?.for_answer(&message)?;
        let whose = Whose::of(parts, peer);
        let client = ModernClient {
            client: parking::Client { holder: line.holder().clone(), whose: whose.clone() },
            states: self.bridging.seals.of(&self.sessions, parts, &message).await?,
            hosts: Arc::new(Seats {
                pool: Arc::clone(&self.bridging.pool),
                eras: Arc::clone(&self.bridging.eras),
                line,
                whose,
                opener,
            }),
            parking: Arc::clone(&self.bridging.parking),
            mirrors: Arc::clone(&self.bridging.mirrors),
        };
        self.served.cancel();
        Ok(client.serve(accepts, message).await)
    }

    /// What a server answered to a request that stands alone. One that looks like another server than before is asked
    /// what it speaks, and served so if it has not done anything yet.
    pub(super) async fn doubt(
        &self,
        peer: Peer,
        parts: &Parts,
        message: &Message,
        response: Response<FromServer>,
    ) -> Result<Response<Body>, Answer> {
        if !matches!(response.status().as_u16(), 400 | 404 | 405) {
            return Ok(response.map(Body::FromServer));
        }
        let (head, body) = response.into_parts();
        let body = Limited::new(body, HANDSHAKE_BYTES).collect().await;
        let body = body.map_err(|_| answer::broken_off(message.owned_id().as_ref()))?.to_bytes();
        if verdict::is_strange(head.status, &body) {
            let line = self.line(peer, parts)?;
            if self.bridging.eras.doubt(&line).await == Some(Verdict::Legacy) {
                let opener = Arc::new(line.clone());
                let answered = self.open_and_serve(peer, line.clone(), opener, parts, message.clone()).await;
                let answer = answered.unwrap_or_else(|refusal| refusal);
                if answer.extensions().get::<Unbegun>().is_none() {
                    return Err(answer);
                }
                let answered = self.serve_unopened(peer, parts, line, message.clone(), answer).await;
                return Err(answered.unwrap_or_else(|refusal| refusal));
            }
        }
        Ok(Response::from_parts(head, Body::Full(body)))
    }
}
