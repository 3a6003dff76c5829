//! One record.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use http::header::USER_AGENT;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use skep_mcp::{Message, method};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Recorder;
use super::outcome::{self, Fault};
use super::record::{Course, Data, Record, Source, Subjects, Target};
use crate::middleware::exchange::{Exchange, Notes};
use crate::middleware::identity::Identity;
use crate::middleware::subject::{cut, subject};
use crate::middleware::telemetry::address;
use crate::random;

/// Who asks when nobody knows.
const ANONYMOUS: &str = "anonymous";

/// So much of each thing that a client says about its request is recorded, in bytes: nobody is to make a record so large
/// that there is no room for it.
const LONGEST: usize = 4 << 10;
/// So much of a name is looked at for secrets, in bytes.
const LONGEST_NAME: usize = 64 << 10;
/// Stands for the rest.
const MORE: char = '…';

/// A request whose record is still to be written. One that nobody ends was given up by its client.
pub(super) struct Pending {
    recorder: Arc<Recorder>,
    notes: Arc<Notes>,
    verb: Method,
    path: String,
    source: Source,
    opens_stream: bool,
    /// Whether what is recorded is how a stream began, and not how it was answered.
    has_begun: bool,
    began: Instant,
    is_written: bool,
}

impl Pending {
    pub(super) fn new(recorder: Arc<Recorder>, exchange: &Exchange<'_>, opens_stream: bool, began: Instant) -> Self {
        let headers = &exchange.parts.headers;
        let address = exchange.peer.ip_text();
        let address =
            Some(headers).filter(|_| recorder.settings.trusts_forwarded).and_then(forwarded).unwrap_or(address);
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(brief(value.into(), LONGEST).into_owned())
        };
        Self {
            source: Source { address, user_agent: text(USER_AGENT.as_str()), request_id: text("x-request-id") },
            notes: Arc::clone(exchange.notes()),
            verb: exchange.parts.method.clone(),
            path: exchange.parts.uri.path().to_owned(),
            recorder,
            opens_stream,
            has_begun: false,
            began,
            is_written: false,
        }
    }

    /// Whether the answer with such a status has a body that is sent.
    pub(super) fn has_body(&self, status: StatusCode) -> bool {
        self.verb != Method::HEAD && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    }

    /// Whether it is a request to be told what changes, which is answered with a stream that stays open.
    pub(super) fn listens(&self) -> bool {
        matches!(&*self.notes.messages(), [message] if message.method() == method::LISTEN)
    }

    /// Whether it may have more than one answer.
    pub(super) fn is_batch(&self) -> bool {
        self.notes.messages().len() > 1
    }

    /// Writes the record of a request that is answered with a stream, which begins so.
    pub(super) fn begin(mut self, status: StatusCode) {
        self.has_begun = true;
        self.end(status, &[], 0);
    }

    /// Writes the record of a request that was answered so: one for each message of a batch.
    pub(super) fn end(mut self, status: StatusCode, answer: &[u8], size: usize) {
        self.is_written = true;
        let looks = self.recorder.settings.detects_errors && status.is_success() && !self.has_begun;
        let mut faults = if looks { outcome::faults(answer) } else { Vec::new() };
        let messages = self.notes.messages();
        let is_batch = messages.len() > 1;
        for message in each(&messages) {
            let id = message.and_then(Message::owned_id);
            // In the answer to a batch everybody has an own one.
            let place = faults.iter().position(|(answered, _)| !is_batch || (id.is_some() && *answered == id));
            let fault = place.map(|place| faults.swap_remove(place).1);
            let outcome = match &fault {
                _ if self.notes.is_denied() || self.is_of_another(status) => outcome::DENIED,
                Some(_) => "application_error",
                None => outcome::of(status),
            };
            self.write(message, outcome, fault, Some((status, answer, size)));
        }
    }

    /// Whether a request was refused because the session that it named is somebody else's. A handshake that names one begins
    /// another.
    fn is_of_another(&self, status: StatusCode) -> bool {
        self.notes.names_session_of_another() && status == StatusCode::NOT_FOUND
    }

    fn write(
        &self,
        message: Option<&Message>,
        outcome: &str,
        fault: Option<Fault>,
        answer: Option<(StatusCode, &[u8], usize)>,
    ) {
        let settings = &self.recorder.settings;
        let kind = self.kind(message);
        if !settings.records(kind) {
            return;
        }
        let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let identity = self.notes.identity().map(Arc::as_ref);
        let mut data = Data::default();
        let size = answer.map(|(.., size)| size).filter(|_| settings.has_answers && !self.has_begun);
        if let Some(request) = message
            && settings.has_requests
            && request.text().len() <= settings.data_bytes
        {
            data.request = Some(said(request.text()));
        }
        let session_of_another = answer.is_some_and(|(status, ..)| self.is_of_another(status));
        if let Some((_, answer, _)) = answer.filter(|(_, answer, _)| settings.has_answers && !answer.is_empty()) {
            let answer = String::from_utf8_lossy(answer);
            data.response = Some(said(cut(&answer, settings.data_bytes).as_bytes()));
        }
        let id = uuid::Builder::from_random_bytes(random::bytes()).into_uuid();
        let mut id_text = uuid::Uuid::encode_buffer();
        let record = Record {
            time: &now,
            audit_id: id.hyphenated().encode_lower(&mut id_text),
            kind,
            outcome,
            component: &settings.component,
            source: &self.source,
            subjects: subjects(identity),
            target: self.target(message),
            delegation: identity
                .and_then(|identity| identity.delegation.as_ref())
                .map(|delegation| delegation.json(settings.hops)),
            course: self.course(fault, size),
            session_of_another,
            data,
        };
        self.recorder.sink.write(|line| record.write(line));
    }

    fn course(&self, fault: Option<Fault>, size: Option<usize>) -> Course<'_> {
        let transport = self.recorder.settings.transport.as_str();
        if self.opens_stream {
            return Course::Stream { transport, user_agent: self.source.user_agent.as_deref() };
        }
        let (code, message) = fault.map(|fault| (fault.code, fault.message)).unzip();
        Course::Answer {
            duration_ms: self.began.elapsed().as_millis(),
            transport: if transport == "sse" { "sse" } else { "http" },
            response_size_bytes: size,
            jsonrpc_error_code: code,
            jsonrpc_error_message: message,
        }
    }

    fn kind(&self, message: Option<&Message>) -> &'static str {
        let is_sse = self.recorder.settings.transport == "sse";
        match message.map(Message::method) {
            _ if self.opens_stream => "sse_connection",
            Some("") => "http_request",
            Some(method::INITIALIZE) => "mcp_initialize",
            Some(method::TOOLS_CALL) => "mcp_tool_call",
            Some(method::TOOLS_LIST) => "mcp_tools_list",
            Some(method::RESOURCES_READ) => "mcp_resource_read",
            Some(method::RESOURCES_LIST) => "mcp_resources_list",
            Some(method::PROMPTS_GET) => "mcp_prompt_get",
            Some(method::PROMPTS_LIST) => "mcp_prompts_list",
            Some(method::PING) => "mcp_ping",
            Some(method::SET_LOG_LEVEL) => "mcp_logging",
            Some("completion/complete") => "mcp_completion",
            Some(method::ROOTS_CHANGED) => "mcp_roots_list_changed",
            Some(name) if name.starts_with("notifications/") => "mcp_notification",
            Some(_) => "mcp_request",
            None if is_sse && self.verb == Method::GET => "sse_connection",
            None if self.verb == Method::POST => "mcp_request",
            None => "http_request",
        }
    }

    fn target<'a>(&'a self, message: Option<&'a Message>) -> Target<'a> {
        let endpoint = brief(self.path.as_str().into(), LONGEST);
        let Some(message) = message.filter(|message| !message.method().is_empty()) else {
            let kind = if self.opens_stream { "sse_endpoint" } else { "endpoint" };
            return Target { endpoint, method: brief(self.verb.as_str().into(), LONGEST), kind, name: None };
        };
        let kind = match message.method() {
            method::TOOLS_CALL | method::TOOLS_LIST => "tool",
            name if name.starts_with("resources/") => "resource",
            method::PROMPTS_GET | method::PROMPTS_LIST => "prompt",
            _ => "endpoint",
        };
        Target { endpoint, method: brief(message.method().into(), LONGEST), kind, name: name(message) }
    }
}

/// A client that does not wait for the answer has still asked.
impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_written {
            for message in each(&self.notes.messages()) {
                self.write(message, "error", None, None);
            }
        }
    }
}

/// The messages that are recorded one by one. A request without any is recorded, too.
fn each(messages: &[Message]) -> impl Iterator<Item = Option<&Message>> {
    let nothing = messages.is_empty().then_some(None);
    messages.iter().map(Some).chain(nothing)
}

/// What a message is about, without secrets in an address.
fn name(message: &Message) -> Option<Cow<'_, str>> {
    subject(message).map(|name| brief(address(brief(name, LONGEST_NAME)), LONGEST))
}

/// At most so many bytes of a text. Where something is cut off, that can be seen.
fn brief(text: Cow<'_, str>, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return text;
    }
    Cow::Owned(format!("{}{MORE}", cut(&text, bytes)))
}

/// Whom something that stands before us names.
fn forwarded(headers: &HeaderMap) -> Option<String> {
    let first = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        let first = value.split(',').next().map(str::trim).filter(|value| !value.is_empty())?;
        Some(brief(first.into(), LONGEST).into_owned())
    };
    first("x-forwarded-for").or_else(|| first("x-real-ip"))
}

fn subjects(identity: Option<&Identity>) -> Subjects<'_> {
    let Some(identity) = identity else {
        return Subjects { user_id: None, user: ANONYMOUS, client_name: None, client_version: None };
    };
    let claim = |name: &str| identity.claims.get(name).and_then(Value::as_str).filter(|claim| !claim.is_empty());
    let names = [identity.name.as_str(), claim("preferred_username").unwrap_or_default(), &identity.email];
    Subjects {
        user_id: Some(&identity.subject),
        user: names.into_iter().find(|name| !name.is_empty()).unwrap_or(ANONYMOUS),
        client_name: claim("client_name"),
        client_version: claim("client_version"),
    }
}

/// What somebody said: as JSON if it is that, or else as a text.
fn said(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|_| String::from_utf8_lossy(text).into())
}
