//! HTTP+SSE, the transport of the first revision: a stream to the client, and an address for its messages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::guard::Permit;
use super::refusal::Refusal;
use super::streamable::read_body;
use super::{Server, event, event_stream, headers};
use crate::demo::batch;
use crate::demo::limits;
use crate::demo::message::{self, Message};
use crate::demo::outbox::Outbox;
use crate::demo::session::Session;
use crate::demo::sessions::Sessions;

/// Where messages go.
pub(super) const MESSAGES: &str = "/messages";

#[derive(Debug, Deserialize)]
pub(super) struct Address {
    #[serde(rename = "sessionId")]
    session: String,
}

pub(super) async fn open(
    State(server): State<Server>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    headers::require_accept(&headers, &["text/event-stream"])?;
    let (sender, messages) = mpsc::channel(limits::QUEUED_MESSAGES);
    let session = Session::new(&server.demo, Outbox::Queue(sender), server.demo.stop.child_token());
    let id = server.sessions.add(Arc::clone(&session));
    let first = format!("event: endpoint\ndata: {MESSAGES}?sessionId={id}\n\n");
    let connection = Connection { sessions: server.sessions, id, session, messages };
    let events = stream::unfold((Some(first), connection), async |(first, mut connection)| {
        let text = match first {
            Some(first) => first,
            None => connection.next().await?,
        };
        Some((text, (None, connection)))
    });
    Ok(event_stream(permit, events))
}

/// The stream of a session, which ends with it.
struct Connection {
    sessions: Arc<Sessions>,
    id: String,
    session: Arc<Session>,
    messages: mpsc::Receiver<Value>,
}

impl Connection {
    async fn next(&mut self) -> Option<String> {
        let text = tokio::select! {
            message = self.messages.recv() => event(&message?),
            () = self.session.ended.cancelled() => return None,
            () = tokio::time::sleep(limits::KEEP_ALIVE) => ": alive\n\n".to_owned(),
        };
        self.session.touch();
        Some(text)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.sessions.end(&self.id);
        self.session.ended.cancel();
    }
}

pub(super) async fn post(
    State(server): State<Server>,
    Query(address): Query<Address>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let session = server.sessions.get(&address.session).ok_or_else(|| Refusal::no_such_session(None))?;
    headers::require_json(&headers)?;
    let value = read_body(body).await?;
    let id = message::readable_id(&value);
    let outbox = session.outbox().clone();
    if let Value::Array(members) = value {
        let batch = batch::take(&session, members).map_err(|fault| Refusal::bad(fault, None))?;
        server.demo.spawn(async move {
            if let Some(answers) = batch.answer(&session, &outbox).await {
                outbox.send(answers).await;
            }
        });
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    match Message::read(value).map_err(|fault| Refusal::bad(fault, id))? {
        Message::Notification { method, params } => session.note(&method, &params),
        Message::Response { id, outcome } => session.answered(&id, outcome),
        Message::Request(request) => server.demo.spawn(async move {
            if let Some(answer) = session.answer(&request, outbox.clone()).await {
                outbox.send(answer).await;
            }
        }),
    }
    Ok(StatusCode::ACCEPTED.into_response())
}
