//! Requests that stand alone, before a process.

use std::sync::Arc;

use http::request::Parts;
use skep_mcp::Message;
use skep_mcp::era::Era;

use super::calls::Ticket;
use super::streamable::Streamable;
use crate::answer::{self, Answer};
use crate::eras::alone::Alone;
use crate::eras::listeners::Place;
use crate::eras::seal::{Broken, refusal};
use crate::intake::Accepts;
use crate::middleware::AsSent;
use crate::reply::Reply;

impl Streamable {
    /// Answers a request that stands alone, whatever the process speaks.
    pub(super) async fn stand_alone(
        &self,
        parts: &Parts,
        accepts: Accepts,
        message: &Message,
    ) -> Result<Answer, Answer> {
        let checked = self.0.calls().mirrors().check(&parts.headers, AsSent::of(parts, message));
        checked.map_err(|fault| answer::bad(&fault, message.owned_id().as_ref()))?;
        let accepts = accepts.for_answer(message)?;
        self.require_ready()?;
        let place = self.0.listeners().admit(parts, message)?;
        let answer = self.answer_alone(parts, accepts, message).await?;
        Ok(Place::give(place, answer))
    }

    async fn answer_alone(&self, parts: &Parts, accepts: Accepts, message: &Message) -> Result<Answer, Answer> {
        let states = self.0.states(parts, message).await?;
        if let Some(answer) = self.0.serve_modern_client(accepts, message, &states).await? {
            return Ok(answer);
        }
        let opened = states.opened(message).map_err(|Broken| refusal(message))?;
        let alone = Alone { request: message.clone(), states, mirrors: Arc::clone(self.0.calls().mirrors()) };
        let reply = Reply { accepts, era: Era::Modern, client: None };
        let stream = reply.stream();
        let ticket = self.0.calls().begin_alone(opened.as_ref().unwrap_or(message), &stream, alone).await;
        let ticket = ticket.map_err(|why| why.answer(message))?;
        Ok(reply.give(&stream, ticket, Ticket::keep).await)
    }
}
