//! A request on its way through the chain, and what is found out about it there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use parking_lot::Mutex;
use skep_mcp::{Id, Message, Payload};

use super::ambiguity;
use super::identity::Identity;
use super::rate_limit::Check;
use super::refusal::Refusal;
use crate::answer::{self, Answer};
use crate::intake;
use crate::limits::Limits;
use crate::listener::Peer;
use crate::upload::{Sent, Upload};

/// A request, with a body that is read at most once and looked into at most once for each change. It goes from layer to layer
/// in a box, so that none of them has to move it.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) peer: Peer,
    pub(crate) parts: Parts,
    upload: Upload,
    limits: &'a Limits,
    notes: Arc<Notes>,
    /// Whether nobody can read the body in another way than we do.
    is_clear: bool,
}

/// A message as its client sent it, where callbacks have changed it since.
#[derive(Debug, Clone)]
pub(crate) struct AsSent(pub(super) Message);

impl AsSent {
    /// The message that the headers of a client speak about.
    pub(crate) fn of<'a>(parts: &'a Parts, message: &'a Message) -> &'a Message {
        Self::changed(parts).unwrap_or(message)
    }

    /// The same, if it was another one.
    pub(crate) fn changed(parts: &Parts) -> Option<&Message> {
        parts.extensions.get::<Self>().map(|Self(message)| message)
    }
}

/// What layers have found out about a request, for those around them to see when it is answered.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    identity: OnceLock<Arc<Identity>>,
    /// The last version of what is in the body: one message, those of a batch, or none.
    messages: Mutex<Arc<[Message]>>,
    is_denied: AtomicBool,
    names_session_of_another: AtomicBool,
    /// The calls whose limits were looked at.
    checks: Mutex<Vec<Check>>,
}

impl Notes {
    /// Who calls, once that is known.
    pub(crate) fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.get()
    }

    /// The message or the messages of a batch, in their last version so far.
    pub(crate) fn messages(&self) -> Arc<[Message]> {
        Arc::clone(&self.messages.lock())
    }

    /// Says that the caller may not do that, whatever status the answer has.
    pub(crate) fn deny(&self) {
        self.is_denied.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has said that the caller may not do that.
    pub(crate) fn is_denied(&self) -> bool {
        self.is_denied.load(Ordering::Relaxed)
    }

    /// Says that the caller has named a session that is somebody else's.
    pub(crate) fn name_session_of_another(&self) {
        self.names_session_of_another.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has named a session that is somebody else's.
    pub(crate) fn names_session_of_another(&self) -> bool {
        self.names_session_of_another.load(Ordering::Relaxed)
    }

    /// Says what the limits of a call have to say about it.
    pub(crate) fn checked(&self, check: Check) {
        self.checks.lock().push(check);
    }

    /// What was said about limits so far.
    pub(crate) fn checks(&self) -> Vec<Check> {
        self.checks.lock().clone()
    }

    /// Says who calls. It is said once and never changed.
    pub(crate) fn identify(&self, identity: Arc<Identity>) {
        let _ = self.identity.set(identity);
    }
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(peer: Peer, request: Request<Upload>, limits: &'a Limits) -> Box<Self> {
        let (parts, upload) = request.into_parts();
        Box::new(Self { peer, parts, upload, limits, notes: Arc::default(), is_clear: false })
    }

    /// What is known about it. Whoever keeps it sees what those behind find out.
    pub(crate) fn notes(&self) -> &Arc<Notes> {
        &self.notes
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// The message or the messages in the body, none when there is no body. A body that is something else is refused,
    /// and so is a batch with a member that is none: whoever reads it after us might see another thing in it.
    /// The body has to be read: nobody passes before that.
    pub(crate) fn parsed(&mut self) -> Result<Option<&Payload>, Answer> {
        let Upload::Read(sent) = &self.upload else { return Err(unread()) };
        if sent.payload.is_none() && !sent.text.is_empty() {
            let text = sent.text.clone();
            intake::require_uncoded(&self.parts.headers)?;
            let payload = Payload::read(text).map_err(|error| answer::unreadable(&error))?;
            self.publish(payload)?;
        }
        Ok(self.known())
    }

    /// The same, for somebody who decides by it: what others may read in another way is refused.
    pub(super) fn judged(&mut self) -> Result<Option<&Payload>, Answer> {
        self.parsed()?;
        if !self.is_clear {
            let is_unclear = |message: &Message| ambiguity::is_ambiguous(message) != Ok(false);
            if self.known().is_some_and(|payload| messages(payload).any(is_unclear)) {
                let subject = self.notes.identity().map(|identity| identity.subject.as_str());
                tracing::info!(subject, "a message can be read in two ways, and is refused");
                return Err(Refusal::NoMessage.answer(None));
            }
            self.is_clear = true;
        }
        Ok(self.known())
    }

    /// Whether the body was read, so that nobody has to wait for it.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.upload, Upload::Read(_))
    }

    /// Reads the body, unless it was read.
    pub(crate) async fn receive(&mut self) -> Result<(), Answer> {
        self.read().await.map(drop)
    }

    /// The message or the messages in the body, as far as somebody has looked.
    pub(crate) fn known(&self) -> Option<&Payload> {
        match &self.upload {
            Upload::Coming(_) => None,
            Upload::Read(sent) => sent.payload.as_ref(),
        }
    }

    /// The id to refuse the request with, as far as somebody has looked.
    pub(crate) fn id(&self) -> Option<Id> {
        match self.known() {
            Some(Payload::Single(message)) => message.owned_id(),
            Some(Payload::Batch(_)) | None => None,
        }
    }

    /// Puts another body into its place, for everybody who comes after.
    pub(crate) fn replace(&mut self, text: Bytes) -> Result<(), Answer> {
        let payload = Payload::read(text.clone()).map_err(|error| answer::unreadable(&error))?;
        self.upload = Upload::Read(Sent { text, payload: None });
        self.is_clear = false;
        self.publish(payload)
    }

    /// How many bytes the body has.
    pub(crate) async fn length(&mut self) -> Result<usize, Answer> {
        Ok(self.read().await?.text.len())
    }

    /// The body, whatever it is.
    async fn read(&mut self) -> Result<&mut Sent, Answer> {
        if let Upload::Coming(_) = self.upload {
            self.upload = Upload::Read(self.take_upload().read(self.limits).await?);
        }
        match &mut self.upload {
            Upload::Read(sent) => Ok(sent),
            // It was put there a line above.
            Upload::Coming(_) => Err(unread()),
        }
    }

    fn publish(&mut self, payload: Payload) -> Result<(), Answer> {
        if let Payload::Batch(members) = &payload
            && let Some(error) = members.iter().find_map(|member| member.as_ref().err())
        {
            return Err(answer::unreadable(error));
        }
        *self.notes.messages.lock() = match &payload {
            Payload::Single(message) => Arc::new([message.clone()]),
            Payload::Batch(_) => messages(&payload).cloned().collect(),
        };
        if let Upload::Read(sent) = &mut self.upload {
            sent.payload = Some(payload);
        }
        Ok(())
    }

    /// Says with the request who calls, for those behind the chain, who may find out more about it.
    pub(super) fn introduce(&mut self) {
        self.parts.extensions.insert(Arc::clone(&self.notes));
    }

    /// The body. There is none afterwards.
    pub(crate) fn take_upload(&mut self) -> Upload {
        std::mem::replace(&mut self.upload, Upload::Read(Sent::default()))
    }

    /// The request as it goes on.
    pub(crate) fn into_request(self) -> Request<Upload> {
        Request::from_parts(self.parts, self.upload)
    }
}

/// A defect of ours: somebody wants to decide by a body that nobody has read.
fn unread() -> Answer {
    answer::empty(http::StatusCode::INTERNAL_SERVER_ERROR)
}

/// The messages of a payload, one by one.
pub(crate) fn messages(payload: &Payload) -> impl Iterator<Item = &Message> {
    let (single, batch) = match payload {
        Payload::Single(message) => (Some(message), None),
        Payload::Batch(messages) => (None, Some(messages)),
    };
    single.into_iter().chain(batch.into_iter().flatten().flatten())
}
