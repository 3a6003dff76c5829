//! Several messages at once, as one revision has them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::{Fault, INVALID_REQUEST};
use skep_mcp::{Kind, Message, ReadError, header};

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
        let headers = &parts.headers;
        let own = self.of_session(headers)?;
        let client = match own.named(parts).await? {
            Named::Unknown => return Err(answer::no_such_session(None)),
            Named::Alive(client) if client.revision().has_batches() => Some(client),
            Named::Nothing if !headers.contains_key(header::PROTOCOL_VERSION) => None,
            _ => {
                let fault = Fault::new(INVALID_REQUEST, "batches belong to revision 2025-03-26");
                return Err(answer::bad(&fault, None));
            }
        };
        intake::check_batch(&messages)?;
        if client.is_none() && messages.iter().flatten().any(|message| message.kind() != Kind::Request) {
            return Err(intake::of_no_session());
        }
        own.require_ready()?;
        if client.is_some() {
            own.0.take_up();
        }
        if let Some(client) = client.as_ref().and_then(|client| own.0.legacy_client(&client.id)) {
            return Ok(client.take_batch(&own.0.line(), messages).await);
        }
        let answers = join_all(messages.iter().map(|message| own.take_member(client.as_ref(), message))).await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(answer::empty(StatusCode::ACCEPTED));
        }
        Ok(answer::batch(&answers))
    }

    async fn take_member(&self, client: Option<&Arc<Client>>, message: &Result<Message, ReadError>) -> Option<Bytes> {
        let message = match message {
            Ok(message) => message,
            Err(error) => return Some(error.answer().into()),
        };
        match (message.kind(), client) {
            (Kind::Request, client) => return Some(self.0.ask(client, message).await),
            (Kind::Notification, Some(client)) => self.0.notified(client, message),
            (Kind::Response, Some(_)) => self.0.replied(message),
            // The batch was refused.
            (Kind::Notification | Kind::Response, None) => {}
        }
        None
    }
}
