//! One request on its way, until its answer has ended or its client has gone.

use std::sync::Arc;
use std::time::Instant;

use http::Method;
use skep_mcp::{Message, Param, method};

use super::Inner;
use super::arguments;
use super::ended::{Ended, Operation};
use super::meters::Active;
use super::span::Span;
use crate::answer::Answer;
use crate::body::Body;
use crate::middleware::exchange::{Exchange, Notes};
use crate::middleware::subject::subject;
use crate::middleware::watch::{self, Watcher};

/// What counts as the answer to a client that did not wait for one.
const GONE: u16 = 499;

/// A request that is still to be counted. That happens when it is dropped, so that none is forgotten.
pub(super) struct Pending {
    telemetry: Arc<Inner>,
    notes: Arc<Notes>,
    verb: Method,
    version: Option<&'static str>,
    span: Option<Span>,
    began: Instant,
    status: Option<u16>,
    size: u64,
    _active: Active,
}

impl Pending {
    pub(super) fn new(telemetry: &Arc<Inner>, exchange: &Exchange<'_>, span: Option<Span>) -> Self {
        Self {
            notes: Arc::clone(exchange.notes()),
            verb: exchange.parts.method.clone(),
            version: super::http_version(&telemetry.settings.transport, exchange.parts.version),
            span,
            began: Instant::now(),
            status: None,
            size: 0,
            _active: telemetry.meters.connection(false),
            telemetry: Arc::clone(telemetry),
        }
    }

    /// The answer, whose end is the end of the request.
    pub(super) fn answered(mut self, answer: Answer) -> Answer {
        self.status = Some(answer.status().as_u16());
        if let Body::Full(text) = answer.body() {
            self.size = text.len() as u64;
            return answer;
        }
        answer.map(|body| watch::watched(body, Watching(Some(self))))
    }

    fn count(&mut self) {
        let messages = self.notes.messages();
        if messages.is_empty() && self.verb == Method::POST {
            tracing::warn!("a request that is no message cannot be counted under a method");
        }
        let status = self.status.unwrap_or(GONE);
        let took = self.began.elapsed();
        let checks = self.notes.checks();
        let meters = &self.telemetry.meters;
        for check in &checks {
            meters.checked(check);
        }
        if let Some(mut span) = self.span.take() {
            // A step of a trace is about one thing.
            if let [message] = &*messages
                && let Some(operation) = operation(message)
            {
                span.tell_message(message, &operation);
            }
            if let Some(check) = checks.last() {
                span.tell_check(check);
            }
            span.tell_answer(status, self.size, took);
            self.telemetry.record(span.end(Some(status)));
        }
        let count = |operation| {
            let ended = Ended { verb: self.verb.as_str().into(), status, operation, version: self.version };
            meters.ended(&ended, took);
        };
        if messages.is_empty() {
            count(None);
        }
        for message in &*messages {
            count(operation(message));
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.count();
    }
}

/// A request whose answer is under way.
struct Watching(Option<Pending>);

impl Watcher for Watching {
    fn see(&mut self, part: &[u8]) {
        if let Some(pending) = &mut self.0 {
            pending.size += part.len() as u64;
        }
    }

    fn end(&mut self) {
        self.0 = None;
    }
}

/// What a message is about. An answer is about what was asked, which is not known here.
fn operation(message: &Message) -> Option<Operation<'_>> {
    let method = Some(message.method()).filter(|method| !method.is_empty())?;
    let name = |of: &str| message.param_text(Param::Name).filter(|_| method == of);
    let (tool, prompt) = (name(method::TOOLS_CALL), name(method::PROMPTS_GET));
    Some(Operation { method: method.into(), subject: subject(message).map(arguments::address), tool, prompt })
}
