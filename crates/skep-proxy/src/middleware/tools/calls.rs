//! Calls of tools that clients see.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use skep_mcp::json::{quote, splice};
use skep_mcp::{Message, Param, Payload, header, method};

use super::ToolRules;
use crate::answer::{self, Answer};
use crate::intake::{self, Accepts};
use crate::middleware::exchange::{Exchange, messages};
use crate::middleware::layer::{Layer, Next, refused, with_body};
use crate::middleware::refusal::Refusal;

/// Refuses tools that are hidden, and calls others by the names that the server knows.
///
/// It goes by the body alone: neither verb nor path nor type can hide a call. A batch with one call that is refused is
/// refused as a whole.
#[derive(Debug)]
pub(crate) struct ToolCalls(ToolRules);

impl ToolCalls {
    pub(crate) fn new(rules: ToolRules) -> Self {
        Self(rules)
    }
}

impl Layer for ToolCalls {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        with_body(exchange, move |mut exchange| match self.check(&mut exchange) {
            Ok(()) => next.pass(exchange),
            Err(refusal) => refused(refusal),
        })
    }
}

impl ToolCalls {
    fn check(&self, exchange: &mut Exchange<'_>) -> Result<(), Answer> {
        exchange.judged()?;
        // It was read a line above.
        let Some(payload) = exchange.known() else { return Ok(()) };
        let mut is_renamed = false;
        for call in messages(payload).filter(|message| message.method() == method::TOOLS_CALL) {
            is_renamed |= self.check_call(call, &exchange.parts.headers)?;
        }
        if !is_renamed {
            return Ok(());
        }
        let (text, name) = match payload {
            Payload::Single(call) => (self.renamed(call), call.param_text(Param::Name)),
            Payload::Batch(members) => {
                let members: Vec<Bytes> = members.iter().flatten().map(|member| self.renamed(member)).collect();
                ([&b"["[..], &members.join(&b","[..]), b"]"].concat().into(), None)
            }
        };
        let name = name.map(|name| HeaderValue::from_str(&header::encode(self.0.original(&name))));
        if let Some(Ok(name)) = name
            && exchange.parts.headers.contains_key(header::NAME)
        {
            // It says what the body says, as it did when it came.
            exchange.parts.headers.insert(header::NAME, name);
        }
        exchange.replace(text)
    }

    /// Whether a call has to be renamed, if it may be made at all.
    fn check_call(&self, call: &Message, headers: &HeaderMap) -> Result<bool, Answer> {
        let name = call.param_text(Param::Name).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Refusal::NoTool.answer(None))?;
        if !self.0.is_shown(&name) {
            let takes_json = Accepts::read(headers).is_ok_and(|accepts| accepts.json);
            let refusal = if takes_json { Refusal::NoSuchTool } else { Refusal::NoSuchToolUnsaid };
            return Err(refusal.answer(call.owned_id().as_ref()));
        }
        let is_renamed = self.0.original(&name) != name;
        if is_renamed && intake::is_modern(headers) {
            // Afterwards the header would be ours, and could not disagree any more.
            header::check_subject(headers, call).map_err(|fault| answer::bad(&fault, call.owned_id().as_ref()))?;
        }
        Ok(is_renamed)
    }

    /// A message in which a tool has the name that the server knows.
    fn renamed(&self, message: &Message) -> Bytes {
        let name = message.param_span(Param::Name).zip(message.param_text(Param::Name));
        let Some((place, name)) = name.filter(|_| message.method() == method::TOOLS_CALL) else {
            return message.text().clone();
        };
        splice(message.text(), [(place, quote(self.0.original(&name)).as_bytes())]).into()
    }
}
