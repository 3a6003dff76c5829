//! Several messages at once, as one revision has them, before a server that has not agreed to that revision.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::Fault;
use skep_mcp::{Kind, Message, Payload, ReadError};

use super::Transparent;
use super::look::Known;
use crate::answer::{self, Answer};
use crate::eras::http::HttpLine;
use crate::eras::line::{Line as _, Lost};
use crate::intake;
use crate::listener::Peer;

impl Transparent {
    /// Sends the messages of a batch one by one, unless the server has agreed to take them together.
    pub(super) async fn unbatch(&self, peer: Peer, parts: &Parts, known: &mut Known) -> Result<Option<Answer>, Answer> {
        if !matches!(known.payload, Some(Payload::Batch(_))) || known.session.is_some() {
            return Ok(None);
        }
        intake::require_json(&parts.headers)?;
        let Some(Payload::Batch(messages)) = known.payload.take() else { return Ok(None) };
        let line = self.line(peer, parts)?.legacy();
        let answers = join_all(messages.into_iter().map(|message| take(&line, message))).await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(Some(answer::empty(StatusCode::ACCEPTED)));
        }
        Ok(Some(answer::batch(&answers)))
    }
}

/// The answer to one of them, if it wants one. What the server says before that has no place in a batch.
async fn take(line: &HttpLine, message: Result<Message, ReadError>) -> Option<Bytes> {
    let message = match message {
        Ok(message) => message,
        Err(error) => return Some(error.answer().into()),
    };
    if message.kind() != Kind::Request {
        line.tell(message.text().clone()).await;
        return None;
    }
    let lost = |fault: Fault| Bytes::from(fault.answer(message.owned_id().as_ref()));
    let mut replies = match line.ask(&message).await {
        Ok(replies) => replies,
        Err(problem) => return Some(lost(problem.fault())),
    };
    while let Some(reply) = replies.next().await {
        if reply.kind() == Kind::Response {
            return Some(reply.text().clone());
        }
    }
    Some(lost(Lost::Unreached.fault()))
}
