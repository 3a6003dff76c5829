//! Streamable HTTP: one endpoint for requests of both eras.

use std::sync::Arc;

use axum::body::{self, Body};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::guard::Permit;
use super::headers::{LAST_EVENT, SESSION, VERSION};
use super::refusal::Refusal;
use super::{Server, event_stream, headers, json, stateless};
use crate::demo::batch;
use crate::demo::era::{Era, Surroundings, classify};
use crate::demo::events::{EventStream, parse_event_id};
use crate::demo::limits;
use crate::demo::message::{self, Fault, INVALID_REQUEST, Message, Request};
use crate::demo::outbox::Outbox;
use crate::demo::revision::Revision;
use crate::demo::session::Session;

pub(super) async fn post(
    State(server): State<Server>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    headers::require_json(&headers)?;
    headers::require_accept(&headers, &["application/json", "text/event-stream"])?;
    let value = read_body(body).await?;
    let id = message::readable_id(&value);
    if let Value::Array(members) = value {
        return take_batch(&server, permit, &headers, members);
    }
    match Message::read(value).map_err(|fault| Refusal::bad(fault, id))? {
        Message::Request(request) => take_request(&server, permit, &headers, request).await,
        // Without a session there is nothing that a notification could be about.
        Message::Notification { .. } if headers::is_stateless(&headers) => Ok(StatusCode::ACCEPTED.into_response()),
        Message::Notification { method, params } => {
            session(&server, &headers, None)?.note(&method, &params);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Message::Response { id, .. } if headers::is_stateless(&headers) => {
            let fault = Fault::new(INVALID_REQUEST, "nothing was asked that this could be the answer to");
            Err(Refusal::bad(fault, Some(id)))
        }
        Message::Response { id, outcome } => {
            session(&server, &headers, Some(&id))?.answered(&id, outcome);
            Ok(StatusCode::ACCEPTED.into_response())
        }
    }
}

pub(super) async fn read_body(body: Body) -> Result<Value, Refusal> {
    let bytes = body::to_bytes(body, limits::MESSAGE_BYTES)
        .await
        .map_err(|_| Refusal::transport(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"))?;
    message::parse(&bytes).map_err(|fault| Refusal::bad(fault, None))
}

async fn take_request(
    server: &Server,
    permit: Permit,
    headers: &HeaderMap,
    request: Request,
) -> Result<Response, Refusal> {
    let refused = |fault| Refusal::bad(fault, Some(request.id.clone()));
    let header = headers::single(headers, VERSION).map_err(refused)?;
    let known = headers.get(SESSION).and_then(|id| server.sessions.get(id.to_str().ok()?));
    let surroundings = Surroundings::Http { header, session: known.and_then(|session| session.revision()) };
    match classify(&request, surroundings, server.demo.spoken).map_err(refused)? {
        Era::Stateless(envelope) => stateless::answer(&server.demo, permit, headers, request, envelope).await,
        Era::Session if request.method == "initialize" => Ok(initialize(server, &request)),
        Era::Session => {
            let session = session(server, headers, Some(&request.id))?;
            let id = request.id.clone();
            converse(server, permit, &session, Some(&id), |session, outbox| async move {
                session.answer(&request, outbox).await
            })
        }
    }
}

fn initialize(server: &Server, request: &Request) -> Response {
    let session = Session::resumable(&server.demo);
    let outcome = session.initialize(&request.params);
    let is_open = outcome.is_ok();
    let mut response = json(StatusCode::OK, &message::answer(&request.id, outcome));
    if is_open {
        let id = server.sessions.add(session);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
    } else {
        session.ended.cancel();
    }
    response
}

fn take_batch(server: &Server, permit: Permit, headers: &HeaderMap, members: Vec<Value>) -> Result<Response, Refusal> {
    if headers::is_stateless(headers) {
        return Err(Refusal::bad(Fault::new(INVALID_REQUEST, "batches belong to revision 2025-03-26"), None));
    }
    let session = session(server, headers, None)?;
    let batch = batch::take(&session, members).map_err(|fault| Refusal::bad(fault, None))?;
    if batch.is_silent() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    converse(server, permit, &session, None, |session, outbox| async move { batch.answer(&session, &outbox).await })
}

/// Answers on a stream of its own, which goes on when the client loses it.
fn converse<F>(
    server: &Server,
    permit: Permit,
    session: &Arc<Session>,
    id: Option<&Value>,
    answer: impl FnOnce(Arc<Session>, Outbox) -> F,
) -> Result<Response, Refusal>
where
    F: Future<Output = Option<Value>> + Send + 'static,
{
    let stream = session.open_stream().map_err(|fault| Refusal::busy(fault, id.cloned()))?;
    if session.revision().is_some_and(Revision::has_polling) {
        stream.prime();
    }
    let answer = answer(Arc::clone(session), Outbox::Stream(Arc::clone(&stream)));
    let events = follow(session, stream.read());
    server.demo.spawn(finish(stream, answer));
    Ok(event_stream(permit, events))
}

async fn finish(stream: Arc<EventStream>, answer: impl Future<Output = Option<Value>>) {
    if let Some(answer) = answer.await {
        stream.send(&answer).await;
    }
    stream.finish();
}

/// The events of a stream, each of which counts as use of the session.
fn follow<S: Stream<Item = String>>(session: &Arc<Session>, events: S) -> impl Stream<Item = String> + use<S> {
    let session = Arc::clone(session);
    events.inspect(move |_| session.touch())
}

pub(super) async fn get(
    State(server): State<Server>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if headers::is_stateless(&headers) {
        return Ok(only_post());
    }
    headers::require_accept(&headers, &["text/event-stream"])?;
    let session = session(&server, &headers, None)?;
    let Some(last) = headers.get(LAST_EVENT) else {
        let stream = session.stream(0).ok_or_else(|| Refusal::no_such_session(None))?;
        return Ok(event_stream(permit, follow(&session, stream.read())));
    };
    let missed =
        last.to_str().ok().and_then(parse_event_id).and_then(|(name, number)| session.stream(name)?.read_after(number));
    // A client that is refused would ask again for ever; one that finds an empty stream knows that there is no more.
    Ok(match missed {
        Some(events) => event_stream(permit, follow(&session, events)),
        None => event_stream(permit, futures::stream::empty()),
    })
}

pub(super) async fn delete(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Refusal> {
    if headers::is_stateless(&headers) {
        return Ok(only_post());
    }
    let id = headers.get(SESSION).ok_or_else(|| Refusal::session_required(None))?;
    if id.to_str().is_ok_and(|id| server.sessions.end(id)) {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(Refusal::no_such_session(None))
    }
}

fn only_post() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")]).into_response()
}

/// The session that a request names.
fn session(server: &Server, headers: &HeaderMap, id: Option<&Value>) -> Result<Arc<Session>, Refusal> {
    let name = headers.get(SESSION).ok_or_else(|| Refusal::session_required(id.cloned()))?;
    let session = name.to_str().ok().and_then(|name| server.sessions.get(name));
    session.ok_or_else(|| Refusal::no_such_session(id.cloned()))
}
