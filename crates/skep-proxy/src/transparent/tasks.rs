//! Tasks of servers that have sessions, for clients whom the chain has found out. Everything else passes as it is.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{StatusCode, response};
use skep_mcp::Payload;
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, METHOD_NOT_FOUND};

use super::Transparent;
use super::look::Known;
use super::target::Dialect;
use crate::answer::{self, Answer};
use crate::body::{Body, BodyError};
use crate::budget::{self, Allowance, Spent};
use crate::eras::holder::Holder;
use crate::eras::http::{is_json, is_stream};
use crate::eras::session_tasks::{SessionTasks, are_meant_by};
use crate::middleware::{identity, messages};
use crate::passing::{self, Read, Unread};
use crate::sessions::Session;

/// What belongs to a session whose server has tasks.
const OFFERED: &str = "server_tasks";

/// Writes down that the server of a session has tasks, so that every proxy that finds it knows.
pub(super) fn mark(session: &mut Session) {
    session.metadata.insert(OFFERED.to_owned(), "true".to_owned());
}

impl Transparent {
    /// Whose tasks a request or its answer may name. Nobody's where none can be, or where the server itself sees who asks.
    pub(super) fn has_tasks(&self, known: &Known) -> Option<Holder> {
        let caller = known.caller.as_ref().filter(|_| known.era != Some(Era::Modern))?;
        let is_offered = || known.session.as_ref().is_some_and(|session| session.metadata.contains_key(OFFERED));
        let is_meant = || known.request().is_some_and(are_meant_by);
        // On the other transport answers come on another stream than what they answer.
        let may_be = self.dialect() == Dialect::Sse || is_offered() || is_meant();
        may_be.then(|| Holder::Known(Arc::clone(caller)))
    }

    /// The tasks of somebody. A request that names some gets the ids that its server knows.
    pub(super) async fn tasks(&self, holder: Holder, known: &mut Known) -> Result<Box<SessionTasks>, Answer> {
        let states = self.bridging.seals.of_tasks(&self.sessions, holder).await?;
        let tasks = Box::new(SessionTasks { states, begun: Arc::clone(&self.bridging.tasks) });
        if let Some(Payload::Single(message)) = &mut known.payload {
            // Where answers come on a stream, nobody would look for one here.
            let code = if self.dialect() == Dialect::Sse { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            let refused = |fault: Fault| answer::fault(code, &fault, message.owned_id().as_ref());
            if let Some(own) = tasks.asked(message).map_err(refused)? {
                known.body = own.text().clone();
                *message = own;
            }
        }
        Ok(tasks)
    }
}

/// Refuses tasks of a client that is known, where nobody would bind their ids.
pub(super) fn refuse(status: StatusCode, parts: &Parts, payload: &Payload) -> Result<(), Answer> {
    let meant = messages(payload).find(|message| are_meant_by(message));
    let Some(message) = meant.filter(|_| identity::proven(&parts.extensions).is_some()) else { return Ok(()) };
    let fault = Fault::new(METHOD_NOT_FOUND, "Method not found: there are no tasks here");
    Err(answer::fault(status, &fault, message.owned_id().as_ref()))
}

/// An answer with the ids of tasks that the client knows.
pub(super) async fn answer(
    tasks: SessionTasks,
    head: &mut response::Parts,
    body: Body,
    allowance: &Allowance,
) -> Result<Body, Spent> {
    if !head.status.is_success() || head.headers.contains_key(CONTENT_ENCODING) {
        return Ok(body);
    }
    if is_stream(&head.headers) {
        head.headers.remove(CONTENT_LENGTH);
        return Ok(passing::changed(body, allowance, tasks));
    }
    if !is_json(&head.headers) {
        return Ok(body);
    }
    Ok(match passing::hold(body, allowance, |_| false).await {
        Ok(Read::Whole(text)) => {
            let changed = tasks.told(&text);
            if changed.is_some() {
                head.headers.remove(CONTENT_LENGTH);
            }
            Body::Full(budget::changed(text, changed))
        }
        Ok(Read::Begun(text, body)) => body.after(text),
        // Whoever reads on finds out where it ends.
        Err(Unread::Broken(text, error)) => broken(error).after(text),
        Err(Unread::NoRoom) => return Err(Spent),
    })
}

fn broken(error: BodyError) -> Body {
    Body::stream(futures::stream::once(std::future::ready(Err::<Bytes, _>(error))))
}
