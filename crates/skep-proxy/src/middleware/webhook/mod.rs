//! Callbacks that see every message before the server does: some may change it, some may only refuse it.
//!
//! Whatever a callback says, the client hears only our own words; the callback's go to the log.

mod document;
mod exact;
mod patch;
mod round;
mod signature;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use skep_mcp::{Kind, Message, Param, Payload, header, json, method};

use self::document::{About, principal};
use self::round::{Changed, Hook};
pub use self::signature::{Secret, SecretError};
use super::exchange::{AsSent, Exchange, messages};
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use super::tools::ToolRules;
use crate::answer::Answer;
use crate::fetch::{FetchError, FilesError, TlsFiles};
use crate::lapses::Lapses;

/// Bytes of a message that callbacks are asked about.
const LARGEST_MESSAGE: usize = 1 << 20;

/// What callbacks may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Change a message, or refuse it.
    Change,
    /// Refuse a message.
    Refuse,
}

/// What happens to a message when a callback fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It goes on as if the callback were not there.
    Ignore,
}

/// One callback.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// What it is called in the log.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// How long it may take.
    pub timeout: Duration,
    /// What happens when it fails.
    pub failure_policy: FailurePolicy,
    /// How it is reached over TLS.
    pub tls: TlsFiles,
    /// What messages to it are signed with.
    pub secret: Option<Secret>,
}

/// Why callbacks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// A layer without callbacks does nothing.
    #[error("there is no webhook in the list")]
    None,
    /// One of them is not complete.
    #[error("webhook {name:?}: {problem}")]
    Settings {
        /// Which one.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// One of them is where nobody may be asked.
    #[error("webhook {name:?}: its url: {cause}")]
    Address {
        /// Which one.
        name: String,
        /// Why.
        cause: FetchError,
    },
    /// One of them cannot be reached in the way that was asked for.
    #[error("webhook {name:?}: {cause}")]
    Files {
        /// Which one.
        name: String,
        /// Why.
        cause: FilesError,
    },
    /// There is no key for its signatures.
    #[error("webhook {name:?}: {cause}")]
    Secret {
        /// Which one.
        name: String,
        /// Why.
        cause: SecretError,
    },
}

/// Callbacks of one power.
#[derive(Debug)]
pub struct Webhooks {
    power: Power,
    hooks: Vec<Hook>,
    server: String,
    transport: String,
    /// The tools that there are for clients.
    tools: Option<ToolRules>,
    /// How often they have made of a request what is none.
    lapses: Lapses,
}

impl Webhooks {
    /// Callbacks in their order. Their files are looked at once before the first message.
    pub fn new(
        power: Power,
        webhooks: Vec<WebhookSettings>,
        server: &str,
        transport: &str,
    ) -> Result<Self, WebhookError> {
        if webhooks.is_empty() {
            return Err(WebhookError::None);
        }
        let hooks = webhooks.into_iter().map(Hook::new).collect::<Result<_, _>>()?;
        Ok(Self {
            power,
            hooks,
            server: server.to_owned(),
            transport: transport.to_owned(),
            tools: None,
            lapses: Lapses::default(),
        })
    }

    /// Says which tools callbacks can put in the place of others.
    pub(super) fn among(mut self, tools: ToolRules) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Asks all callbacks about all messages of a request, whatever verb, path and type it came with.
    async fn review(&self, exchange: &mut Exchange<'_>) -> Result<(), Answer> {
        exchange.receive().await?;
        exchange.judged()?;
        let Some(payload) = exchange.known() else { return Ok(()) };
        let id = exchange.id();
        let size: usize = messages(payload).map(|message| message.text().len()).sum();
        if size > LARGEST_MESSAGE {
            return Err(Refusal::TooLargeForWebhooks.answer(id.as_ref()));
        }
        let is_batch = matches!(payload, Payload::Batch(_));
        let texts: Vec<Message> = messages(payload).cloned().collect();
        // Whoever is asked might see another thing in it than the server.
        if texts.iter().any(|message| json::twice(message.as_str()) != Ok(None)) {
            tracing::info!("a message that says something twice cannot be asked about, and is refused");
            return Err(Refusal::NoMessage.answer(None));
        }
        let told = exchange.notes().identity().map(|identity| principal(identity)).unwrap_or_default();
        let source = exchange.peer.address.to_string();
        let about = About { principal: &told, server: &self.server, transport: &self.transport, source: &source };
        let mut reviewed = Vec::with_capacity(texts.len());
        let mut is_changed = false;
        for message in &texts {
            // An answer to the server's own question is nobody's wish.
            let text = match message.kind() {
                Kind::Response => None,
                Kind::Request | Kind::Notification => round::run(&self.hooks, self.power, &about, message.as_str())
                    .await
                    .map_err(|refusal| refusal.answer(message.owned_id().as_ref()))?,
            };
            is_changed |= text.is_some();
            reviewed.push(match text {
                Some(changed) => self.checked(changed, message)?,
                None => message.clone(),
            });
        }
        if !is_changed {
            return Ok(());
        }
        let text = if let (false, [before], [after]) = (is_batch, &texts[..], &reviewed[..]) {
            keep_in_step(&mut exchange.parts.headers, before, after);
            // Whoever knows which arguments headers repeat has to check that of what the client said.
            exchange.parts.extensions.get_or_insert_with(|| AsSent(before.clone()));
            after.text().clone()
        } else {
            let texts: Vec<&str> = reviewed.iter().map(Message::as_str).collect();
            format!("[{}]", texts.join(",")).into()
        };
        exchange.replace(text)
    }

    /// A message as callbacks made it, which cannot call what clients cannot.
    fn checked(&self, changed: Changed, before: &Message) -> Result<Message, Answer> {
        let after = read(changed.text.into(), before).map_err(|(refusal, cause)| {
            if let Some(times) = self.lapses.failed() {
                tracing::warn!(webhook = changed.by, cause, times, "what a webhook makes of a request cannot be used");
            }
            refusal.answer(before.owned_id().as_ref())
        })?;
        let is_hidden = match (&self.tools, called(&after)) {
            (Some(rules), Some(tool)) => called(before).as_ref() != Some(&tool) && !rules.is_callable(&tool),
            _ => false,
        };
        if is_hidden {
            return Err(Refusal::NoSuchTool.answer(after.owned_id().as_ref()));
        }
        Ok(after)
    }
}

impl Layer for Webhooks {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match self.review(&mut exchange).await {
                Ok(()) => next.pass(exchange).await,
                Err(refusal) => refusal,
            }
        })
    }
}

/// The tool that a message calls.
fn called(message: &Message) -> Option<Cow<'_, str>> {
    message.param_text(Param::Name).filter(|_| message.method() == method::TOOLS_CALL)
}

/// A message as callbacks made it. Its sender waits for an answer under its own id, or for none.
fn read(text: Bytes, before: &Message) -> Result<Message, (Refusal, &'static str)> {
    let id = before.owned_id();
    let is_same = |after: &Message| match (&id, after.id()) {
        (None, None) => true,
        (Some(id), Some(after)) => id.means(after),
        _ => false,
    };
    match Payload::read(text) {
        Ok(Payload::Single(after)) if after.kind() == Kind::Response => {
            Err((Refusal::NoRequestFromWebhook, "it is no request any more"))
        }
        Ok(Payload::Single(after)) if is_same(&after) => Ok(after),
        Ok(Payload::Single(_)) => Err((Refusal::NoRequestFromWebhook, "its id is another one")),
        Ok(Payload::Batch(_)) => Err((Refusal::BatchFromWebhook, "it is a batch")),
        Err(_) => Err((Refusal::NoRequestFromWebhook, "it is no message any more")),
    }
}

/// Headers that repeated the message repeat the changed one. Those that did not are left to be refused.
fn keep_in_step(headers: &mut HeaderMap, before: &Message, after: &Message) {
    let has_agreed = header::check(headers, before).and_then(|()| header::check_subject(headers, before)).is_ok();
    if !has_agreed {
        return;
    }
    let subject = method::subject(after.method()).and_then(|subject| after.param_text(subject));
    let subject = subject.map(|subject| header::encode(&subject).into_owned());
    for (name, value) in [(header::METHOD, Some(after.method())), (header::NAME, subject.as_deref())] {
        headers.remove(&name);
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, name: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"{name}"}}}}"#);
        Message::read(text.into()).unwrap()
    }

    #[test]
    fn headers_follow_the_message_unless_they_lied_about_it() {
        let stepped = |told: &'static str| {
            let mut headers: HeaderMap = [
                (header::METHOD, HeaderValue::from_static("tools/call")),
                (header::NAME, HeaderValue::from_static(told)),
            ]
            .into_iter()
            .collect();
            keep_in_step(&mut headers, &call("tools/call", "a"), &call("prompts/get", "Zürich"));
            [header::METHOD, header::NAME].map(|name| headers[name].to_str().unwrap().to_owned())
        };
        assert_eq!(stepped("a"), ["prompts/get", "=?base64?WsO8cmljaA==?="]);
        assert_eq!(stepped("b"), ["tools/call", "b"]);
        let mut none = HeaderMap::new();
        keep_in_step(&mut none, &call("tools/call", "a"), &call("tools/call", "b"));
        assert!(none.is_empty());
    }

    #[test]
    fn trap_24_what_callbacks_make_is_still_one_request_under_its_id() {
        let before = call("tools/call", "a");
        let status = |text: &'static str| match read(Bytes::from_static(text.as_bytes()), &before) {
            Ok(_) => 200,
            Err((refusal, _)) => refusal.answer(None).status().as_u16(),
        };
        assert_eq!(status(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), 200);
        assert_eq!(status(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), 400);
        for text in [
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "7",
        ] {
            assert_eq!(status(text), 500, "{text}");
        }
    }
}
