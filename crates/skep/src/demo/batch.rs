//! Batches of messages, which one revision has.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;

use super::era::{CAPABILITIES_KEY, VERSION_KEY};
use super::limits;
use super::message::{self, Fault, INVALID_REQUEST, Message, Request};
use super::outbox::Outbox;
use super::revision::Revision;
use super::session::Session;

/// The requests of a batch. Its other messages have been taken.
#[derive(Debug)]
pub(crate) struct Batch {
    requests: Vec<Request>,
    /// Answers to members that are no messages.
    refusals: Vec<Value>,
}

/// Takes a batch of a session whose revision has them.
pub(crate) fn take(session: &Session, members: Vec<Value>) -> Result<Batch, Fault> {
    let invalid = |reason: &str| Err(Fault::new(INVALID_REQUEST, reason));
    if !session.revision().is_some_and(Revision::has_batches) {
        return invalid("batches belong to revision 2025-03-26");
    }
    if members.is_empty() || members.len() > limits::BATCH_MESSAGES {
        return invalid("a batch has from 1 to 50 messages");
    }
    if members.iter().any(is_out_of_place) {
        return invalid("a batch holds no handshake, and no requests that stand alone");
    }
    let mut batch = Batch { requests: Vec::new(), refusals: Vec::new() };
    for member in members {
        let id = message::readable_id(&member);
        match Message::read(member) {
            Ok(Message::Request(request)) => batch.requests.push(request),
            Ok(Message::Notification { method, params }) => session.note(&method, &params),
            Ok(Message::Response { id, outcome }) => session.answered(&id, outcome),
            Err(fault) => batch.refusals.push(fault.answer(id.as_ref())),
        }
    }
    Ok(batch)
}

fn is_out_of_place(member: &Value) -> bool {
    let meta = &member["params"]["_meta"];
    member["method"] == "initialize" || meta.get(VERSION_KEY).is_some() || meta.get(CAPABILITIES_KEY).is_some()
}

impl Batch {
    /// Whether nothing in it wants an answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.requests.is_empty() && self.refusals.is_empty()
    }

    /// The answers, as a batch. None when all requests were called off.
    pub(crate) async fn answer(self, session: &Arc<Session>, outbox: &Outbox) -> Option<Value> {
        let answers = join_all(self.requests.iter().map(|request| session.answer(request, outbox.clone()))).await;
        let answers: Vec<Value> = self.refusals.into_iter().chain(answers.into_iter().flatten()).collect();
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}
