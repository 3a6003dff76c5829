//! Several messages at once, as one revision has them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::{Fault, INVALID_REQUEST};
use skep_mcp::{Kind, Message, ReadError};

use super::clients::Client;
use super::streamable::{Named, Streamable};
use crate::answer::{self, Answer};
use crate::intake;

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
        if let Some(client) = own.0.legacy_client(&client.id) {
            return Ok(client.take_batch(&own.0.line(), messages).await);
        }
        let answers = join_all(messages.iter().map(|message| own.take_member(&client, message))).await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(answer::empty(StatusCode::ACCEPTED));
        }
        Ok(answer::batch(&answers))
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
