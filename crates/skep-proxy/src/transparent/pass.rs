//! A request on its way to the server, and its answer on the way back.

use std::sync::Arc;

use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use skep_mcp::era::Era;
use skep_mcp::{Message, header};

use super::announced::Announced;
use super::asked::Noted;
use super::endpoint::Rewrite;
use super::hand_back::hand_back;
use super::listening::Again;
use super::look::Known;
use super::target::Dialect;
use super::upstream::{Failed, FromServer, Outgoing};
use super::{Transparent, headers, same_era, small, tasks};
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::budget::Spent;
use crate::eras::listeners::Place;
use crate::listener::Peer;
use crate::middleware::{AsSent, EndsSession, Exchange};

impl Transparent {
    /// Passes a request on, and its answer back.
    pub(super) async fn pass(&self, mut exchange: Box<Exchange<'_>>) -> Result<Answer, Answer> {
        if let Some(reason) = self.readiness.reason() {
            return Err(answer::not_ready(&reason));
        }
        let sent = exchange.take_upload().read(&self.limits).await?;
        let mut known = self.look(&exchange.parts, sent).await?;
        known.address = Some(exchange.peer.address.ip());
        let alone = known.request().filter(|_| known.era == Some(Era::Modern));
        let place = alone.map(|request| self.bridging.listeners.admit(&exchange.parts, request)).transpose()?.flatten();
        let answer =
            self.answer(exchange.peer, &mut exchange.parts, &mut known).await.unwrap_or_else(|refusal| refusal);
        Ok(Place::give(place, answer))
    }

    /// The answer to a request, whoever of us gives it.
    async fn answer(&self, peer: Peer, parts: &mut Parts, known: &mut Known) -> Result<Answer, Answer> {
        if let Some(answer) = self.bridge(peer, parts, known).await? {
            return Ok(answer);
        }
        if let Some(answer) = self.unbatch(peer, parts, known).await? {
            return Ok(answer);
        }
        let mut tasks = match self.has_tasks(known) {
            Some(holder) => Some(Box::pin(self.tasks(holder, known)).await?),
            None => None,
        };
        let asked = (known.handshake.is_some() || known.alone.is_some()).then(|| Box::new(parts.clone()));
        let opening = self.opens_older(parts).then(|| Box::new(parts.clone()));
        let mut announced = self.announced(parts, known);
        if let Some(announced) = &mut announced {
            announced.tasks = tasks.take();
        }
        let stream = announced.as_ref().and_then(|_| self.addresses.find(&parts.uri));
        let noted = stream.and_then(|stream| stream.note(known.payload.as_ref()));
        let mut outgoing = self.outgoing(peer, parts, known)?;
        if parts.extensions.get::<EndsSession>().is_some() && !outgoing.is_within(known.bound()) {
            return Err(EndsSession::refuse(parts.uri.path()));
        }
        if let Some(between) = known.between {
            between.ask(&mut outgoing, known.payload.as_ref());
        }
        if announced.is_some() || asked.is_some() || tasks.is_some() {
            // What is to be changed has to be readable.
            outgoing.headers.remove(ACCEPT_ENCODING);
        }
        let response = self.exchange(&outgoing, known).await?;
        if response.status().is_success() {
            noted.into_iter().for_each(Noted::keep);
        }
        if let Some(parts) = opening.filter(|_| Self::has_no_stream(response.status())) {
            return Box::pin(self.open_older(peer, &parts)).await;
        }
        let response = match (&asked, &known.alone) {
            (Some(parts), Some(alone)) => Box::pin(self.doubt(peer, parts, &alone.request, response)).await?,
            (Some(parts), None) => Box::pin(self.settle(peer, parts, known, response)).await?,
            (None, _) => response.map(Body::FromServer),
        };
        let (mut head, mut body) = response.into_parts();
        let begins =
            known.handshake.is_some() || known.alone.is_some() || head.headers.contains_key(header::SESSION_ID);
        if head.status == StatusCode::OK && begins {
            self.served.cancel();
        }
        self.keep_session(&head, &outgoing, known).await?;
        body = small::in_one_piece(&head, body, known.request(), &self.limits.held).await?;
        let no_room = |Spent| answer::no_room(known.request().and_then(Message::owned_id).as_ref());
        if let Some(between) = known.between {
            // On the other transport answers come on the stream of the session.
            let request = known.request().filter(|_| self.dialect() == Dialect::Streamable);
            body = between.answer(&mut head, body, request, &self.limits.answers()).await.map_err(no_room)?;
        }
        if let Some(tasks) = tasks {
            let allowance = self.limits.answers();
            body = Box::pin(tasks::answer(*tasks, &mut head, body, &allowance)).await.map_err(no_room)?;
        }
        // The stream of a session goes on until somebody ends it.
        let open_ended = announced.as_deref().map(Announced::open_ended).unwrap_or_default();
        let answer = hand_back(head, body, known, announced);
        match known.alone.take() {
            Some(alone) => {
                let again = Again::of(&alone, &self.upstream, outgoing);
                Box::pin(same_era::adapted(alone, again, answer, &self.limits.answers())).await
            }
            None if outgoing.method == Method::GET => {
                let answer = match known.bound() {
                    Some(session) => self.read.mark(&session.id, answer),
                    None => answer,
                };
                Ok(open_ended.mark(answer))
            }
            None => Ok(answer),
        }
    }

    /// What is done with the stream of a client that says this about itself.
    fn announced(&self, parts: &Parts, known: &Known) -> Option<Box<Announced>> {
        if self.dialect() != Dialect::Sse {
            return None;
        }
        let headers = &parts.headers;
        let is_scheme_told = self.forwarded.is_trusted && headers.contains_key("x-forwarded-proto");
        Some(Box::new(Announced {
            sessions: Arc::clone(&self.sessions),
            caller: known.caller.clone(),
            address: known.address,
            served: self.served.clone(),
            rewrite: Rewrite::new(self.forwarded.reached(headers, "http", None), is_scheme_told),
            is_known: false,
            opened: self.addresses.open(self.target.at(parts.uri.path_and_query()?.clone())?, known.caller.clone()),
            is_within: false,
            tasks: None,
            allowance: self.limits.answers(),
        }))
    }

    /// The request as the server gets it. Its headers are not in `parts` any more.
    pub(super) fn outgoing(&self, peer: Peer, parts: &mut Parts, known: &Known) -> Result<Outgoing, Answer> {
        let bad = || answer::text(StatusCode::BAD_REQUEST, "the address cannot be passed on");
        let path = self.target.path_and_query(self.dialect(), &parts.method, &parts.uri).ok_or_else(bad)?;
        let headers = std::mem::take(&mut parts.headers);
        let mut headers = headers::outgoing(headers, &parts.uri, &self.target, peer, known.era);
        if known.payload.is_some() {
            headers::as_read(&mut headers);
        }
        if known.handshake.is_some() {
            headers.remove(header::SESSION_ID);
        }
        if let Some(subject) = &known.subject {
            headers.insert(header::NAME, subject.clone());
        }
        if let (Some(before), Some(alone)) = (AsSent::changed(parts), &known.alone) {
            self.bridging.mirrors.keep_in_step(&mut headers, before, &alone.request);
        }
        let mut outgoing = Outgoing {
            method: parts.method.clone(),
            uri: self.target.at(path).ok_or_else(bad)?,
            headers,
            body: known.body.clone(),
            signer: parts.extensions.get().cloned(),
        };
        if let Some(session) = known.bound() {
            outgoing.aim(session);
        }
        Ok(outgoing)
    }

    /// Sends a request; once more when its server was replaced.
    async fn exchange(&self, outgoing: &Outgoing, known: &Known) -> Result<Response<FromServer>, Answer> {
        let unreachable = |_: Failed| answer::empty(StatusCode::BAD_GATEWAY);
        let first = self.upstream.send(outgoing).await;
        if first.is_err() && known.alone.is_some() {
            // Whoever comes up in its place may be of another era.
            self.bridging.eras.forget();
        }
        let session = known.bound().filter(|_| outgoing.method != Method::DELETE);
        let is_replaced = match &first {
            Ok(response) => response.status() == StatusCode::NOT_FOUND,
            Err(failed) => failed.is_unreached,
        };
        let Some(session) = session.filter(|_| is_replaced) else {
            return first.map_err(unreachable);
        };
        let Some(renewed) = Box::pin(self.recover(session, outgoing)).await? else { return first.map_err(unreachable) };
        let mut again = outgoing.clone();
        again.aim(&renewed);
        Box::pin(self.upstream.send(&again)).await.map_err(unreachable)
    }
}
