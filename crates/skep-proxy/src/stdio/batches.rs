//! Several messages at once, as one revision has them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, INVALID_REQUEST};
use skep_mcp::{Id, Kind, Message, ReadError};

use super::clients::Client;
use super::streamable::{Named, Streamable};
use crate::answer::{self, Answer};
use crate::passing::{self, Read};
use crate::{intake, limits};

impl Streamable {
    pub(super) async fn take_batch(
        &self,
        parts: &Parts,
        messages: Vec<Result<Message, ReadError>>,
    ) -> Result<Answer, Answer> {
        let own = self.of_session(&parts.headers)?;
        let client = match own.named(parts).await? {
            Named::Unknown => return Err(answer::no_such_session(None)),
            // Whoever has agreed to the revision that has them was given a session.
            Named::Alive(client) if client.revision().has_batches() => client,
            Named::Alive(_) | Named::Nothing => {
                let fault = Fault::new(INVALID_REQUEST, "batches belong to revision 2025-03-26");
                return Err(answer::bad(&fault, None));
            }
        };
        intake::check_batch(&messages)?;
        own.require_ready()?;
        own.0.take_up();
        Ok(own.answer_batch(&client, messages).await)
    }

    /// The answers to the messages of a batch. Where none of them wants one, it was taken.
    async fn answer_batch(&self, client: &Arc<Client>, messages: Vec<Result<Message, ReadError>>) -> Answer {
        if let Some(client) = self.0.legacy_client(&client.id) {
            return client.take_batch(&self.0.line(), messages).await;
        }
        let answers = join_all(messages.iter().map(|message| self.take_member(client, message))).await;
        // What was called off has no answer, and says nothing.
        let answers: Vec<Bytes> = answers.into_iter().flatten().filter(|answer| !answer.is_empty()).collect();
        if answers.is_empty() { answer::empty(StatusCode::ACCEPTED) } else { answer::batch(answers) }
    }

    /// Takes a batch whose client has one stream for everything. The answers come there together, as one message.
    pub(super) async fn answer_batch_on_stream(&self, client: &Arc<Client>, messages: Vec<Result<Message, ReadError>>) {
        let ids = wanting_answers(&messages);
        let answer = self.answer_batch(client, messages).await;
        if answer.status() == StatusCode::ACCEPTED {
            return;
        }
        let stream = client.background();
        match passing::hold(answer.into_body(), &self.0.limits().answers(), |_| false).await {
            Ok(Read::Whole(answers)) if stream.bytes() < limits::UNREAD_ANSWER_BYTES => stream.push(answers),
            _ => stream.push(lost(&ids)),
        }
    }

    async fn take_member(&self, client: &Arc<Client>, message: &Result<Message, ReadError>) -> Option<Bytes> {
        let message = match message {
            Ok(message) => message,
            Err(error) => return Some(error.answer().into()),
        };
        match message.kind() {
            Kind::Request => return Some(self.0.ask(client, message).await),
            Kind::Notification => self.0.notified(client, message).await,
            Kind::Response => self.0.replied(message).await,
        }
        None
    }
}

/// The ids of those who want an answer. What cannot be read is told so under none.
fn wanting_answers(messages: &[Result<Message, ReadError>]) -> Vec<Option<Id>> {
    let wanting = messages.iter().filter_map(|message| match message {
        Ok(message) if message.kind() == Kind::Request => Some(message.owned_id()),
        Ok(_) => None,
        Err(_) => Some(None),
    });
    wanting.collect()
}

/// What is told instead of answers that there is no room for.
fn lost(ids: &[Option<Id>]) -> Bytes {
    tracing::warn!(answers = ids.len(), "dropped the answers to a batch, because there is no room for them");
    let fault = Fault::new(INTERNAL_ERROR, "the answer is lost: there is no room for all answers of its batch");
    let answers: Vec<String> = ids.iter().map(|id| fault.answer(id.as_ref())).collect();
    format!("[{}]", answers.join(",")).into()
}
