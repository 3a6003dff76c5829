//! Several messages at once, as one revision has them, before a server that has not agreed to that revision.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use http::StatusCode;
use http::request::Parts;
use skep_mcp::fault::Fault;
use skep_mcp::{Kind, Message, Payload, ReadError, Revision, header, translate};

use super::Transparent;
use super::look::Known;
use crate::answer::{self, Answer};
use crate::budget;
use crate::eras::http::HttpLine;
use crate::eras::line::{Line as _, Lost};
use crate::intake;
use crate::listener::Peer;

impl Transparent {
    /// Sends the messages of a batch one by one, unless the server has agreed to take them together.
    pub(super) async fn unbatch(&self, peer: Peer, parts: &Parts, known: &mut Known) -> Result<Option<Answer>, Answer> {
        let is_taken_together = known.session.is_some() && known.between.is_none();
        if !matches!(known.payload, Some(Payload::Batch(_))) || is_taken_together {
            return Ok(None);
        }
        Box::pin(self.one_by_one(peer, parts, known)).await
    }

    async fn one_by_one(&self, peer: Peer, parts: &Parts, known: &mut Known) -> Result<Option<Answer>, Answer> {
        intake::require_json(&parts.headers)?;
        let line = self.line(peer, parts)?;
        let line = match known.between {
            Some(between) => {
                let aimed = self.outgoing(peer, &mut parts.clone(), known)?;
                let session = aimed.headers.get(header::SESSION_ID).cloned();
                line.towards(aimed.uri).within(session, between.server)
            }
            None => line.legacy(),
        };
        let reads = known.between.map(|between| between.client);
        let Some(Payload::Batch(messages)) = known.payload.take() else { return Ok(None) };
        let answers = join_all(messages.into_iter().map(|message| take(&line, reads, message))).await;
        let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(Some(answer::empty(StatusCode::ACCEPTED)));
        }
        Ok(Some(answer::batch(answers)))
    }
}

/// The answer to one of them, if it wants one, in the revision that the client reads where that is another one. What the server says before that has no place in a batch.
async fn take(line: &HttpLine, reads: Option<Revision>, message: Result<Message, ReadError>) -> Option<Bytes> {
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
            let adapted = reads.and_then(|reads| translate::answer_for(reply.as_str(), reads));
            return Some(budget::changed(reply.text().clone(), adapted.map(Bytes::from)));
        }
    }
    Some(lost(Lost::Unreached.fault()))
}
