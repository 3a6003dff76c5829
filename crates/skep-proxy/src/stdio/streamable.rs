//! The bridge as streamable HTTP: one endpoint for requests of both eras.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use skep_mcp::era::Era;
use skep_mcp::{Kind, Message, Payload, Revision, header, method};

use super::bridge::Bridge;
use super::caller::Caller;
use super::calls::Ticket;
use super::clients::Client;
use super::connect::Connector;
use super::handshake;
use super::other_era::Place;
use super::processes::Begun;
use crate::answer::{self, Answer};
use crate::intake::{self, Accepts};
use crate::reply::{Reply, whole};
use crate::sessions::{self, Owner};
use crate::upload::Upload;

/// The endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Streamable(pub(crate) Arc<Bridge>);

/// The session that a request names.
pub(super) enum Named {
    Nothing,
    Unknown,
    Alive(Arc<Client>),
}

impl Streamable {
    /// Answers a request to the endpoint.
    pub(crate) async fn serve(&self, request: Request<Upload>) -> Answer {
        let (parts, body) = request.into_parts();
        let answered = match parts.method {
            Method::POST => self.post(&parts, body).await,
            Method::GET | Method::DELETE if intake::is_modern(&parts.headers) => {
                Err(answer::wrong_method("POST, OPTIONS"))
            }
            Method::GET => self.get(&parts).await,
            Method::DELETE => self.delete(&parts).await,
            _ => Err(answer::wrong_method("GET, POST, DELETE")),
        };
        answered.unwrap_or_else(|refusal| refusal)
    }

    async fn post(&self, parts: &Parts, body: Upload) -> Result<Answer, Answer> {
        intake::require_json(&parts.headers)?;
        let accepts = Accepts::read(&parts.headers)?;
        let sent = body.read(self.0.limits()).await?;
        match sent.payload().map_err(|error| answer::unreadable(&error))? {
            Payload::Single(message) => self.take(parts, accepts, &message).await,
            Payload::Batch(messages) => self.take_batch(parts, messages).await,
        }
    }

    pub(super) fn require_ready(&self) -> Result<(), Answer> {
        self.0.readiness().reason().map_or(Ok(()), |reason| Err(answer::not_ready(&reason)))
    }

    /// The endpoint whose process has the session that a request names.
    pub(super) fn of_session(&self, headers: &HeaderMap) -> Result<Self, Answer> {
        Ok(Self(self.0.of_session(named(headers)?)))
    }

    /// The session that a request names, if it is its caller's.
    pub(super) async fn named(&self, parts: &Parts) -> Result<Named, Answer> {
        let Some(id) = named(&parts.headers)? else { return Ok(Named::Nothing) };
        Ok(self.0.session(id, Owner::of(parts)).await?.map_or(Named::Unknown, Named::Alive))
    }

    async fn take(&self, parts: &Parts, accepts: Accepts, message: &Message) -> Result<Answer, Answer> {
        let headers = &parts.headers;
        let own = self.of_session(headers)?;
        let named = own.named(parts).await?;
        let session = if let Named::Alive(client) = &named { Some(client.revision()) } else { None };
        if intake::classify(message, headers, session)? == Era::Modern {
            return match message.kind() {
                Kind::Request => self.stand_alone(parts, accepts, message).await,
                // Without a session there is nothing that it could be about.
                Kind::Notification | Kind::Response => Ok(answer::empty(StatusCode::ACCEPTED)),
            };
        }
        let within = intake::within_session(message);
        let message = within.as_ref().unwrap_or(message);
        let is_handshake = message.kind() == Kind::Request && message.method() == method::INITIALIZE;
        let client = match named {
            // Whoever begins anew is not asked for a session.
            _ if is_handshake => None,
            Named::Unknown => return Err(answer::no_such_session(message.owned_id().as_ref())),
            Named::Alive(client) => Some(client),
            Named::Nothing => None,
        };
        // Whoever has no session meets the process that all share, whatever else the request names.
        let endpoint = if client.is_some() { &own } else { self };
        if message.kind() == Kind::Request {
            endpoint.require_ready()?;
            if client.is_some() {
                endpoint.0.take_up();
            }
        }
        if is_handshake {
            let begun = endpoint.0.begin().await?;
            return initialize(begun, Owner::of(parts), accepts, message).await;
        }
        endpoint.take_within(client, accepts, intake::revision(headers), message).await
    }

    async fn take_within(
        &self,
        client: Option<Arc<Client>>,
        accepts: Accepts,
        without: Revision,
        message: &Message,
    ) -> Result<Answer, Answer> {
        if let Some(older) = client.as_ref().and_then(|client| self.0.legacy_client(&client.id)) {
            return Ok(older.take(self.0.line(), accepts, message.clone()).await);
        }
        match (message.kind(), client) {
            (Kind::Request, client) => {
                return self.request(Reply { accepts, era: Era::Legacy, client }, without, message).await;
            }
            (Kind::Notification, Some(client)) => self.0.notified(&client, message).await,
            (Kind::Response, Some(_)) => self.0.replied(message).await,
            // All share the process then, and it would hear that from nobody.
            (Kind::Notification | Kind::Response, None) => return Err(intake::of_no_session()),
        }
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Answers a handshake whose session brings its connection.
    pub(crate) async fn open(
        &self,
        connector: Box<dyn Connector>,
        parts: &Parts,
        message: &Message,
    ) -> Result<Answer, Answer> {
        let accepts = Accepts::read(&parts.headers)?;
        let begun = self.0.begin_with(connector).await?;
        initialize(begun, Owner::of(parts), accepts, message).await
    }

    /// Answers a request. One without a session reads the revision `without`.
    async fn request(&self, reply: Reply, without: Revision, message: &Message) -> Result<Answer, Answer> {
        self.0.require_handshake(message).await?;
        if let Some(text) = self.0.answer_locally(reply.client.as_deref(), message).await {
            return Ok(whole(reply.accepts, text));
        }
        let stream = reply.stream();
        let caller = Caller::of(reply.client.as_deref(), Some(without));
        let ticket = self.0.calls().begin(message, caller, &stream, true).await.map_err(|why| why.answer(message))?;
        Ok(reply.give(&stream, ticket, Ticket::keep).await)
    }

    async fn get(&self, parts: &Parts) -> Result<Answer, Answer> {
        let headers = &parts.headers;
        if named(headers)?.is_none() {
            // There is no stream but that of a session.
            return Err(answer::wrong_method("POST, DELETE"));
        }
        Accepts::require_events(headers)?;
        let own = self.of_session(headers)?;
        let Named::Alive(client) = own.named(parts).await? else { return Err(answer::no_such_session(None)) };
        if let Some(client) = own.0.legacy_client(&client.id) {
            return Ok(client.listen(own.0.line(), headers).await);
        }
        Ok(client.listen(headers.get(header::LAST_EVENT_ID)))
    }

    async fn delete(&self, parts: &Parts) -> Result<Answer, Answer> {
        let id = intake::session(&parts.headers)?
            .ok_or_else(|| answer::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id header required for DELETE"))?;
        let was_there = self.0.of_session(Some(id)).close_session(id, Owner::of(parts)).await?;
        if was_there { Ok(answer::empty(StatusCode::NO_CONTENT)) } else { Err(answer::no_such_session(None)) }
    }
}

/// Answers a handshake, in a session that begins with it.
async fn initialize(begun: Begun, owner: Owner<'_>, accepts: Accepts, message: &Message) -> Result<Answer, Answer> {
    let bridge = &begun.bridge;
    let (text, client) = match bridge.shake_hands(message).await {
        Ok(agreed) => {
            let (text, revision) = handshake::answer(message, &agreed);
            let client = bridge.open_session(revision, sessions::Kind::Streamable, owner).await?;
            (Bytes::from(text), Some(client))
        }
        Err(refusal) => match bridge.open_legacy_client(message, &refusal, Place::New(owner)).await? {
            Some((text, client)) => (text, Some(client)),
            None => (handshake::refusal(message.owned_id().as_ref(), &refusal).into(), None),
        },
    };
    let mut answer = whole(accepts, text);
    if let Some(client) = client {
        begun.keep(&client.id);
        if let Ok(id) = HeaderValue::from_str(&client.id) {
            answer.headers_mut().insert(header::SESSION_ID, id);
        }
    }
    Ok(answer)
}

/// The name of the session that a request is about. What stands alone is about none, whatever it names.
fn named(headers: &HeaderMap) -> Result<Option<&str>, Answer> {
    Ok(intake::session(headers)?.filter(|_| !intake::is_modern(headers)))
}

#[cfg(test)]
mod tests {
    use skep_mcp::lines::Line;

    use super::*;
    use crate::limits::Limits;
    use crate::readiness::{Readiness, State};

    /// A bridge whose server answers everything at once, and says of which era it is.
    fn answering() -> Arc<Bridge> {
        let bridge = Bridge::new(Limits::default(), Readiness::default());
        bridge.readiness().set(State::Ready);
        let (server, mut asked) = (Arc::clone(&bridge), bridge.take_outgoing().unwrap());
        tokio::spawn(async move {
            while let Some(queued) = asked.recv().await {
                let message = Message::read(queued.line).unwrap();
                let result = r#"{"supportedVersions":["2026-07-28"]}"#;
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message.id().unwrap());
                server.receive(Line::Whole(answer.into()));
            }
        });
        bridge
    }

    #[tokio::test]
    async fn trap_14_requests_that_stand_alone_leave_nothing_behind() {
        let bridge = answering();
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
            ("mcp-session-id", "7d444840-9dc0-11d1-b245-5ffdce74fad2"),
        ];
        let mut post = Request::post("/mcp");
        for (name, value) in headers {
            post = post.header(name, value);
        }
        let (parts, ()) = post.body(()).unwrap().into_parts();
        for number in 0..1000 {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":1}}}}}}"#
            );
            let events = number % 2 > 0 || number % 3 == 0;
            let accepts = Accepts { json: number % 3 > 0, events, streams: events };
            let message = Message::read(text.into()).unwrap();
            let answer = Streamable(Arc::clone(&bridge)).take(&parts, accepts, &message).await.unwrap();
            assert_eq!((answer.status(), answer.headers().get(header::SESSION_ID)), (StatusCode::OK, None));
        }
        assert_eq!(bridge.calls().len(), 0);
        assert!(bridge.clients().ids().is_empty());
    }
}
