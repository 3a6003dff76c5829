//! The bridge as HTTP+SSE, the transport of the first revision: a stream to the client, and an address for its
//! messages.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use skep_mcp::sse::Frame;
use skep_mcp::{Kind, Message, Param, Payload, ReadError, Revision, header, method};

use super::bridge::Bridge;
use super::caller::Caller;
use super::calls::Ticket;
use super::clients::Client;
use super::connect::Connector;
use super::handshake;
use super::load::TooMuch;
use super::other_era::Place;
use super::processes::Begun;
use super::streamable::Streamable;
use crate::answer::{self, Answer};
use crate::forwarded::{self, Forwarded};
use crate::intake::{self, Accepts};
use crate::open_ended::OpenEnded;
use crate::sessions::{self, Owner, Unavailable};
use crate::upload::Upload;

/// Where the two endpoints are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths {
    /// The stream.
    pub(crate) stream: &'static str,
    /// Where messages go.
    pub(crate) messages: &'static str,
    /// What the address of messages calls the session.
    session: &'static str,
}

impl Paths {
    /// Those that the transport has where there is no other.
    pub(crate) const ITS_OWN: Self = Self { stream: "/sse", messages: "/messages", session: "session_id" };
    /// The one endpoint of streamable HTTP.
    pub(crate) const SHARED: Self = Self { stream: "/mcp", messages: "/mcp", session: "sessionId" };

    /// Whether a request opens a stream at an endpoint that streamable HTTP has, too. Whoever speaks that has a session
    /// before it opens a stream.
    pub(crate) fn is_opening(headers: &HeaderMap) -> bool {
        let is_other = headers.contains_key(header::SESSION_ID) || headers.contains_key(header::PROTOCOL_VERSION);
        !is_other && Accepts::read(headers).is_ok_and(|accepts| accepts.events)
    }

    /// The session that an address names.
    pub(crate) fn session<'a>(&self, uri: &'a http::Uri) -> Option<&'a str> {
        let mut pairs = uri.query().unwrap_or_default().split('&');
        pairs.find_map(|pair| pair.strip_prefix(self.session)?.strip_prefix('=')).filter(|id| !id.is_empty())
    }
}

/// The two endpoints.
#[derive(Debug, Clone)]
pub(crate) struct Sse {
    pub(crate) bridge: Arc<Bridge>,
    pub(crate) forwarded: Forwarded,
    pub(crate) paths: Paths,
}

impl Sse {
    /// Whether a request to an endpoint that streamable HTTP has, too, is of this transport. Whoever speaks the other one
    /// does not name its session in the address.
    pub(crate) fn is_meant(&self, request: &Request<Upload>) -> bool {
        let headers = request.headers();
        match *request.method() {
            Method::GET => Paths::is_opening(headers),
            Method::POST => {
                let is_other = headers.contains_key(header::SESSION_ID) || intake::is_modern(headers);
                !is_other && self.paths.session(request.uri()).is_some()
            }
            _ => false,
        }
    }

    /// Answers a request to the endpoint that is both.
    pub(crate) async fn serve(&self, scheme: &str, request: Request<Upload>) -> Answer {
        if request.method() == Method::GET { self.open(scheme, request).await } else { self.post(request).await }
    }

    /// Opens a stream.
    pub(crate) async fn open(&self, scheme: &str, request: Request<Upload>) -> Answer {
        if request.method() != Method::GET {
            return answer::wrong_method("GET");
        }
        if let Some(reason) = self.bridge.readiness().reason() {
            return answer::not_ready(&reason);
        }
        let (parts, _) = request.into_parts();
        let opened = async { self.begin_session(self.bridge.begin().await?, scheme, &parts).await };
        opened.await.map_or_else(|refusal| refusal, |(answer, _)| answer)
    }

    /// Opens a stream for a session that brings its connection, and names the session.
    pub(crate) async fn open_over(
        &self,
        connector: Box<dyn Connector>,
        scheme: &str,
        parts: &Parts,
    ) -> Result<(Answer, Arc<str>), Answer> {
        self.begin_session(self.bridge.begin_with(connector).await?, scheme, parts).await
    }

    async fn begin_session(&self, begun: Begun, scheme: &str, parts: &Parts) -> Result<(Answer, Arc<str>), Answer> {
        let opened = begun.bridge.open_session(Revision::November2024, sessions::Kind::Sse, Owner::of(parts));
        let client = opened.await?;
        let address = self.address(scheme, &parts.headers, &parts.uri, &client.id);
        let first = Frame { name: Some("endpoint"), data: address.as_bytes(), ..Default::default() }.encode();
        let gone = Gone { bridge: Arc::clone(&begun.bridge), id: Arc::clone(&client.id) };
        let events = client.background().read(gone);
        begun.keep(&client.id);
        let stream = Arc::clone(client.background());
        let answer = answer::events(events.after(first.into()));
        Ok((OpenEnded::with_answers(move || stream.is_owed()).mark(answer), Arc::clone(&client.id)))
    }

    /// The address for the messages of a session, as the client can reach it.
    fn address(&self, scheme: &str, headers: &HeaderMap, uri: &http::Uri, id: &str) -> String {
        let Paths { stream, messages, session } = self.paths;
        let path = format!("{messages}?{session}={id}");
        let reached = self.forwarded.reached(headers, scheme, forwarded::host(headers, uri));
        // A stream is often mapped with its own name, which the messages do not have.
        let prefix = reached.prefix.strip_suffix(stream).unwrap_or(&reached.prefix);
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
        let id = self.paths.session(&parts.uri);
        let id = id.ok_or_else(|| bad(&format!("{} is required", self.paths.session)))?;
        let bridge = self.bridge.of_session(Some(id));
        let held = bridge.held_session(id, Owner::of(parts)).await?;
        let held = held.ok_or_else(|| answer::no_such_session(None))?;
        // Its stream is the only way to answer it.
        let elsewhere = "SSE connection not held by this instance";
        let client = held.ok_or_else(|| answer::text(StatusCode::SERVICE_UNAVAILABLE, elsewhere))?;
        let message = match body.read(self.bridge.limits()).await?.payload() {
            Ok(Payload::Single(message)) => message,
            Ok(Payload::Batch(messages)) if client.revision().has_batches() => {
                begin_batch(bridge, client, messages)?;
                return Ok(answer::accepted());
            }
            Ok(Payload::Batch(_)) => return Err(bad("Error parsing JSON-RPC message: it is a batch")),
            Err(error) => return Err(bad(&format!("Error parsing JSON-RPC message: {error}"))),
        };
        let message = intake::within_session(&message).unwrap_or(message);
        match message.kind() {
            Kind::Request => begin(bridge, client, message).await?,
            _ if let Some(client) = bridge.legacy_client(&client.id) => client.note(message),
            Kind::Notification => bridge.notified(&client, &message).await,
            Kind::Response => bridge.replied(&message).await,
        }
        Ok(answer::accepted())
    }
}

/// Refuses what the server cannot be asked now, and what the client leaves no room to answer.
fn require_room(bridge: &Bridge, client: &Client) -> Result<(), Answer> {
    if let Some(reason) = bridge.readiness().reason() {
        return Err(answer::not_ready(&reason));
    }
    if !client.background().has_room() {
        return Err(answer::text(StatusCode::INTERNAL_SERVER_ERROR, "Failed to send message to destination"));
    }
    Ok(())
}

/// Sends several messages on their way. Their answers go to the stream together.
fn begin_batch(
    bridge: Arc<Bridge>,
    client: Arc<Client>,
    messages: Vec<Result<Message, ReadError>>,
) -> Result<(), Answer> {
    intake::check_batch(&messages)?;
    require_room(&bridge, &client)?;
    let bytes: usize = messages.iter().flatten().map(|message| message.text().len()).sum();
    let share = client.load().take(bytes).map_err(|TooMuch| answer::too_many(&TooMuch::fault(), None))?;
    let owed = client.background().owe();
    tokio::spawn(async move {
        Streamable(bridge).answer_batch_on_stream(&client, messages).await;
        drop((owed, share));
    });
    Ok(())
}

/// Sends a request on its way. Its answer goes to the stream.
async fn begin(bridge: Arc<Bridge>, client: Arc<Client>, message: Message) -> Result<(), Answer> {
    require_room(&bridge, &client)?;
    if !needs_us(message.method()) && bridge.handshake().is_agreed() {
        let ticket = bridge.calls().begin(&message, Caller::from(&*client), client.background(), false).await;
        return ticket.map(Ticket::keep).map_err(|why| why.answer(&message));
    }
    let share = client.load().take(message.text().len()).map_err(|TooMuch| TooMuch::answer(&message))?;
    let owed = client.background().owe();
    // These are rare. They end with the patience that we have for the server.
    tokio::spawn(async move {
        if let Some(older) = bridge.legacy_client(&client.id) {
            older.answer_on(bridge.line(), message, client.background()).await;
            return drop((owed, share));
        }
        let answer = if message.method() == method::INITIALIZE {
            initialize(&bridge, &client, &message).await
        } else {
            bridge.ask(&client, &message).await
        };
        client.background().answer(answer, message.owned_id().as_ref());
        drop((owed, share));
        if let Some(older) = bridge.legacy_client(&client.id) {
            older.tell_changes(bridge.line()).await;
        }
    });
    Ok(())
}

/// Whether a request cannot go to the server as it is.
fn needs_us(name: &str) -> bool {
    let is_ours = matches!(
        name,
        method::INITIALIZE | method::PING | method::SUBSCRIBE | method::UNSUBSCRIBE | method::SET_LOG_LEVEL
    );
    is_ours || matches!(name, method::DISCOVER | method::LISTEN) || name.starts_with(method::TASKS)
}

async fn initialize(bridge: &Arc<Bridge>, client: &Arc<Client>, message: &Message) -> Bytes {
    match bridge.shake_hands(message).await {
        Ok(agreed) => {
            let (text, revision) = handshake::answer(message, &agreed);
            client.agree_on(revision);
            text.into()
        }
        Err(refusal) => match bridge.open_legacy_client(message, &refusal, Place::Held(client)).await {
            Ok(Some((text, client))) => {
                let asked = message.param_text(Param::ProtocolVersion).unwrap_or_default();
                client.agree_on(Revision::negotiate(&asked));
                text
            }
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
