//! The bridge as HTTP+SSE, the transport of the first revision: a stream to the client, and an address for its
//! messages.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use skep_mcp::sse::Frame;
use skep_mcp::{Kind, Message, Payload, Revision, method};

use super::bridge::Bridge;
use super::clients::Client;
use super::handshake;
use super::other_era::Place;
use crate::answer::{self, Answer};
use crate::forwarded::{self, Forwarded};
use crate::middleware::identity;
use crate::sessions::{self, Unavailable};
use crate::upload::Upload;

/// Where the stream is.
pub(crate) const STREAM: &str = "/sse";
/// Where messages go.
pub(crate) const MESSAGES: &str = "/messages";

/// The two endpoints.
#[derive(Debug, Clone)]
pub(crate) struct Sse {
    pub(crate) bridge: Arc<Bridge>,
    pub(crate) forwarded: Forwarded,
}

impl Sse {
    /// Opens a stream.
    pub(crate) async fn open(&self, scheme: &str, request: &Request<Upload>) -> Answer {
        if request.method() != Method::GET {
            return answer::wrong_method("GET");
        }
        self.begin_session(scheme, request).await.unwrap_or_else(|refusal| refusal)
    }

    async fn begin_session(&self, scheme: &str, request: &Request<Upload>) -> Result<Answer, Answer> {
        let begun = self.bridge.begin().await?;
        let owner = identity::proven(request.extensions());
        let client = begun.bridge.open_session(Revision::November2024, sessions::Kind::Sse, owner).await?;
        let address = self.address(scheme, request.headers(), request.uri(), &client.id);
        let first = Frame { name: Some("endpoint"), data: address.as_bytes(), ..Default::default() }.encode();
        let gone = Gone { bridge: Arc::clone(&begun.bridge), id: Arc::clone(&client.id) };
        let events = client.background().read(gone);
        begun.keep(&client.id);
        Ok(answer::events(events.after(first.into())))
    }

    /// The address for the messages of a session, as the client can reach it.
    fn address(&self, scheme: &str, headers: &HeaderMap, uri: &http::Uri, id: &str) -> String {
        let path = format!("{MESSAGES}?session_id={id}");
        let reached = self.forwarded.reached(headers, scheme, forwarded::host(headers, uri));
        // A stream is often mapped with its own name, which the messages do not have.
        let prefix = reached.prefix.strip_suffix(STREAM).unwrap_or(&reached.prefix);
        match reached.host {
            Some(host) => format!("{}://{host}{prefix}{path}", reached.scheme),
            None => format!("{prefix}{path}"),
        }
    }

    /// Takes a message.
    pub(crate) async fn post(&self, request: Request<Upload>) -> Answer {
        if request.method() != Method::POST {
            return answer::wrong_method("POST");
        }
        let (parts, body) = request.into_parts();
        self.take(&parts, body).await.unwrap_or_else(|refusal| refusal)
    }

    async fn take(&self, parts: &Parts, body: Upload) -> Result<Answer, Answer> {
        let bad = |text: &str| answer::text(StatusCode::BAD_REQUEST, text);
        let query = parts.uri.query().unwrap_or_default();
        let id = query.split('&').find_map(|pair| pair.strip_prefix("session_id=")).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| bad("session_id is required"))?;
        let bridge = self.bridge.of_session(Some(id));
        let held = bridge.held_session(id, identity::proven(&parts.extensions)).await?;
        let held = held.ok_or_else(|| answer::no_such_session(None))?;
        // Its stream is the only way to answer it.
        let elsewhere = "SSE connection not held by this instance";
        let client = held.ok_or_else(|| answer::text(StatusCode::SERVICE_UNAVAILABLE, elsewhere))?;
        let message = match body.read(self.bridge.limits()).await?.payload() {
            Ok(Payload::Single(message)) => message,
            Ok(Payload::Batch(_)) => return Err(bad("Error parsing JSON-RPC message: it is a batch")),
            Err(error) => return Err(bad(&format!("Error parsing JSON-RPC message: {error}"))),
        };
        match message.kind() {
            Kind::Request => begin(bridge, client, message)?,
            _ if let Some(client) = bridge.legacy_client(&client.id) => client.note(message),
            Kind::Notification => bridge.notified(Some(&client), &message),
            Kind::Response => bridge.replied(&message),
        }
        Ok(answer::accepted())
    }
}

/// Sends a request on its way. Its answer goes to the stream.
fn begin(bridge: Arc<Bridge>, client: Arc<Client>, message: Message) -> Result<(), Answer> {
    if let Some(reason) = bridge.readiness().reason() {
        return Err(answer::not_ready(&reason));
    }
    let failed = || answer::text(StatusCode::INTERNAL_SERVER_ERROR, "Failed to send message to destination");
    if !client.background().has_room() {
        return Err(failed());
    }
    let needs_us = matches!(
        message.method(),
        method::INITIALIZE | method::PING | method::SUBSCRIBE | method::UNSUBSCRIBE | method::SET_LOG_LEVEL
    ) || message.method().starts_with(method::TASKS);
    if !needs_us && bridge.handshake().is_agreed() {
        let ticket = bridge.calls().begin(&message, Some(&client.id), client.background(), false);
        return ticket.map(super::calls::Ticket::keep).map_err(|_| failed());
    }
    // These are rare. They end with the patience that we have for the server.
    tokio::spawn(async move {
        if let Some(older) = bridge.legacy_client(&client.id) {
            return older.answer_on(bridge.line(), message, client.background()).await;
        }
        let answer = if message.method() == method::INITIALIZE {
            initialize(&bridge, &client, &message).await
        } else {
            bridge.ask(Some(&client), &message).await
        };
        client.background().push(answer);
        if let Some(older) = bridge.legacy_client(&client.id) {
            older.tell_changes(bridge.line()).await;
        }
    });
    Ok(())
}

async fn initialize(bridge: &Arc<Bridge>, client: &Arc<Client>, message: &Message) -> Bytes {
    match bridge.handshake().agree(bridge.calls(), Some(message)).await {
        Ok(agreed) => handshake::answer(message, &agreed, bridge.audience()).0.into(),
        Err(refusal) => match bridge.open_legacy_client(message, &refusal, Place::Held(client)).await {
            Ok(Some((text, _))) => text,
            // The store is not asked for a session that is held here.
            Ok(None) | Err(Unavailable) => handshake::refusal(message.owned_id().as_ref(), &refusal).into(),
        },
    }
}

/// Ends a session with its stream.
#[derive(Debug)]
struct Gone {
    bridge: Arc<Bridge>,
    id: Arc<str>,
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.bridge.abandon_session(&self.id);
    }
}
