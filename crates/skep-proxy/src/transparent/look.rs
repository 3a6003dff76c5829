//! What a request is, before it is sent.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, INVALID_REQUEST};
use skep_mcp::{Kind, Message, Param, Payload, ReadError, Revision, header, method};

use super::between::Between;
use super::target::Dialect;
use super::{Transparent, tasks};
use crate::answer::{self, Answer};
use crate::eras::alone::Alone;
use crate::intake;
use crate::sessions::{Owner, Session};
use crate::upload::Sent;

/// What is known about a request before it is sent.
pub(super) struct Known {
    pub(super) era: Option<Era>,
    /// The revision that a handshake asks for.
    pub(super) handshake: Option<Revision>,
    pub(super) session: Option<Arc<Session>>,
    /// Who has proved to call.
    pub(super) caller: Option<Arc<str>>,
    /// Where the client is.
    pub(super) address: Option<IpAddr>,
    pub(super) body: Bytes,
    /// What the body is about, where that is not what the client says.
    pub(super) subject: Option<HeaderValue>,
    /// The message or the messages in it.
    pub(super) payload: Option<Payload>,
    /// What is between the client and the server, when they speak different revisions of one era.
    pub(super) between: Option<Between>,
    /// Whether the server says in its answer to a handshake that it has tasks.
    pub(super) has_tasks: bool,
    /// What the answer is looked at with, when the server is of the same era and requests stand alone.
    pub(super) alone: Option<Alone>,
}

impl Known {
    /// The one request in it, which has to be answered.
    pub(super) fn request(&self) -> Option<&Message> {
        match &self.payload {
            Some(Payload::Single(message)) if message.kind() == Kind::Request => Some(message),
            _ => None,
        }
    }

    /// The session whose server the request goes to. What begins anew or stands alone goes to whichever is there.
    pub(super) fn bound(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|_| self.handshake.is_none() && self.era != Some(Era::Modern))
    }
}

impl Transparent {
    /// Looks at a request: whether it is a message, of which era, in which session.
    pub(super) async fn look(&self, parts: &Parts, sent: Sent) -> Result<Known, Answer> {
        let named = intake::session(&parts.headers)?;
        let who = Owner::of(parts);
        let session = match named {
            // What stands alone has nothing to do with a session, whatever it names.
            Some(id) if !intake::is_modern(&parts.headers) => self.sessions.find(id, who).await?,
            _ => None,
        };
        let (caller, body) = (who.caller.cloned(), sent.text.clone());
        let mut known = Known {
            era: None,
            handshake: None,
            session,
            caller,
            address: None,
            body,
            subject: None,
            payload: None,
            between: None,
            has_tasks: false,
            alone: None,
        };
        let mut id = None;
        // A server may read a message in a body whatever that calls itself.
        if parts.method == Method::POST {
            let revision = known.session.as_ref().map(|session| session.revision());
            let mut payload = sent.payload().map_err(|error| answer::unreadable(&error))?;
            match &mut payload {
                Payload::Single(message) => {
                    known.era = Some(self.classify(message, &parts.headers, revision)?);
                    known.handshake = (message.method() == method::INITIALIZE)
                        .then(|| Revision::negotiate(&message.param_text(Param::ProtocolVersion).unwrap_or_default()));
                    id = message.owned_id();
                    if known.era == Some(Era::Legacy)
                        && let Some(within) = intake::within_session(message)
                    {
                        known.body = within.text().clone();
                        *message = within;
                    }
                }
                Payload::Batch(messages) => {
                    self.check_batch(messages, &parts.headers, revision)?;
                    known.era = Some(Era::Legacy);
                }
            }
            if matches!(payload, Payload::Batch(_)) {
                // Revisions that have the one do not have the other.
                tasks::refuse(StatusCode::BAD_REQUEST, parts, &payload)?;
            }
            known.payload = Some(payload);
        } else {
            known.payload = sent.payload;
        }
        let needs_session = named.is_some() && known.handshake.is_none() && known.era != Some(Era::Modern);
        if needs_session && known.session.is_none() {
            return Err(answer::no_such_session(id.as_ref()));
        }
        let is_message = self.dialect() == Dialect::Sse
            && parts.method == Method::POST
            && named.is_none()
            && known.era != Some(Era::Modern);
        if is_message && !self.is_announced_to(who, &parts.uri).await? {
            return Err(answer::no_such_session(id.as_ref()));
        }
        known.between = match known.bound() {
            Some(session) => Between::of(session),
            None if self.dialect() == Dialect::Sse => {
                self.addresses.find(&parts.uri).and_then(|stream| stream.talk.send(known.payload.as_ref()))
            }
            None if known.era == Some(Era::Legacy) && known.handshake.is_none() => {
                self.told.between(intake::revision(&parts.headers))
            }
            None => None,
        };
        Ok(known)
    }

    /// Refuses a batch where there is none, or with what is not for one.
    fn check_batch(
        &self,
        messages: &[Result<Message, ReadError>],
        headers: &HeaderMap,
        session: Option<Revision>,
    ) -> Result<(), Answer> {
        let told = || {
            let told = headers.get(header::PROTOCOL_VERSION);
            let read = |told: &HeaderValue| Revision::parse(told.to_str().ok()?.trim());
            // The revision that has them has no such header yet.
            told.is_none_or(|told| read(told).is_some_and(Revision::has_batches))
        };
        let is_in_its_revision = session.map_or_else(told, Revision::has_batches);
        if !is_in_its_revision || self.dialect() == Dialect::Sse {
            let fault = Fault::new(INVALID_REQUEST, "batches belong to revision 2025-03-26");
            return Err(answer::bad(&fault, None));
        }
        intake::check_batch(messages)
    }

    fn classify(&self, message: &Message, headers: &HeaderMap, session: Option<Revision>) -> Result<Era, Answer> {
        match self.dialect() {
            // The other era has no such transport, and says so when it comes nevertheless.
            Dialect::Sse if !intake::is_modern(headers) => Ok(Era::Legacy),
            Dialect::Sse | Dialect::Streamable => intake::classify(message, headers, session),
        }
    }
}
