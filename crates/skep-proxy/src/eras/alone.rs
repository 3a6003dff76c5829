//! A request that stands alone, before a server of the same era: it passes as it is, and so does its answer, except for
//! what clients are promised whatever the server says.

use std::sync::Arc;

use bytes::Bytes;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::translate::{self, Outcome};
use skep_mcp::{Kind, Message, MetaKey, json, method};

use super::seal::{State, States, may_ask};
use crate::stdio::mirrors::Mirrors;

/// Where an answer says who listens.
const LISTENER: [&str; 3] = ["result", "_meta", MetaKey::SubscriptionId.name()];
/// What a result is called that is a task.
const TASK: &str = "task";

/// A request while its answer is waited for.
#[derive(Debug)]
pub(crate) struct Alone {
    /// As its client sent it.
    pub(crate) request: Message,
    pub(crate) states: States,
    /// What is known about the tools whose calls repeat arguments in headers.
    pub(crate) mirrors: Arc<Mirrors>,
}

impl Alone {
    /// A result as the client gets it; nothing when that is as it came.
    pub(crate) fn result(&self, result: &str) -> Result<Option<String>, Fault> {
        if self.request.method() == method::TOOLS_LIST {
            self.mirrors.learn(result);
        }
        let unusable = |error: json::EditError| {
            Fault::new(INTERNAL_ERROR, format!("the result of the MCP server cannot be used: {error}"))
        };
        let name = self.request.method();
        let outcome = may_ask(name).then(|| translate::outcome(result)).transpose().map_err(unusable)?;
        let is_task =
            name.starts_with(method::TASKS) || matches!(&outcome, Some(Outcome::Unknown(kind)) if kind == TASK);
        if let Some(Outcome::Questions { questions, state }) = outcome {
            let declared = self.request.meta(MetaKey::ClientCapabilities).unwrap_or("{}");
            if let Some(question) = questions.iter().find(|question| !question.is_declared(declared)) {
                let told = format!("the MCP server asks {}, which the client did not offer", question.method);
                return Err(Fault::new(INTERNAL_ERROR, told));
            }
            return state.map(|state| self.seal(result, state)).transpose();
        }
        let completed = translate::completed(name, result).map_err(unusable)?;
        let bound = if is_task { self.states.bound(completed.as_deref().unwrap_or(result))? } else { None };
        Ok(bound.or(completed))
    }

    /// A result whose state only this client can bring back, and only for this call.
    fn seal(&self, result: &str, state: String) -> Result<String, Fault> {
        let impossible = || {
            let told = "the MCP server wants the request again, and there is no key for what has to be repeated then";
            Fault::new(INTERNAL_ERROR, told)
        };
        if json::decode(&state).is_none() {
            return Err(Fault::new(INTERNAL_ERROR, "the requestState of the MCP server is no text"));
        }
        let sealed = self.states.close(&self.request, &State::OfServer(state)).ok_or_else(impossible)?;
        json::set(result, &["requestState"], &sealed).map_err(|_| impossible())
    }

    /// A message as the client gets it; nothing when that is as it came.
    pub(crate) fn message(&self, message: &Message) -> Option<Bytes> {
        let mut text: Option<String> = None;
        if let Some(result) = message.result() {
            text = match self.result(result) {
                Ok(None) => None,
                Ok(Some(changed)) => json::set(message.as_str(), &["result"], &changed).ok(),
                Err(fault) => Some(fault.answer(self.request.owned_id().as_ref())),
            };
        }
        if self.request.method() == method::LISTEN {
            text = self.named(message, text.as_deref()).or(text);
            let told = text.as_deref().unwrap_or(message.as_str());
            text = self.states.bound_told(message.method(), told).or(text);
        }
        text.map(Bytes::from)
    }

    /// A message that names the listener as the client did. Whom it is for is not the server's to say.
    fn named(&self, message: &Message, changed: Option<&str>) -> Option<String> {
        let own = self.request.id()?;
        match message.kind() {
            Kind::Notification => {
                let told = message.meta_span(MetaKey::SubscriptionId)?;
                let is_other = told.of(message.as_str()) != own;
                is_other
                    .then(|| message.with([(told, own.as_bytes())]))
                    .and_then(|text| String::from_utf8(text.into()).ok())
            }
            Kind::Response => {
                let text = changed.unwrap_or(message.as_str());
                let told = json::find(text, &LISTENER).ok()??.of(text);
                (told != own).then(|| json::set(text, &LISTENER, own).ok()).flatten()
            }
            Kind::Request => None,
        }
    }
}
