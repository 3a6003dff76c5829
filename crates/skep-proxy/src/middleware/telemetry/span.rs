//! One step of a trace: a request, from its beginning to its end. It is written as it is told, so that nothing of it has to
//! be kept in another form.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_LENGTH, HOST, USER_AGENT};
use skep_mcp::{Message, MetaKey, Param, header, json, method};

use super::arguments;
use super::context::Context;
use super::ended::Operation;
use super::meters::network;
use super::otlp::nanoseconds;
use super::otlp::wire::{self, Value};
use super::settings::TelemetrySettings;
use crate::middleware::exchange::Exchange;
use crate::middleware::rate_limit::{Check, Verdict};
use crate::middleware::subject::cut;

/// So many bytes of a value are told. Memory has an end, and so have collectors.
const VALUE: usize = 64 << 10;
/// What most steps need.
const ROOM: usize = 1536;
const ROOM_OF_MESSAGE: usize = 384;
/// The field of attributes.
const ATTRIBUTES: u32 = 9;
/// A span of a server.
const SERVER: u64 = 2;
const OK: u64 = 1;
const ERROR: u64 = 2;
/// It is recorded, and whether its parent is somewhere else is known.
const RECORDED: u32 = 1 | 1 << 8;
const PARENT_IS_REMOTE: u32 = 1 << 9;

const SERVER_NAME: &str = "x-mcp-server-name";
const TRANSPORT: &str = "x-mcp-transport";

/// Where a step stands.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) context: Context,
    pub(super) parent: Option<Context>,
    /// What those who trace say to each other.
    pub(super) state: String,
}

/// A step that is recorded.
#[derive(Debug)]
pub(super) struct Span {
    place: Place,
    name: String,
    began: SystemTime,
    has_legacy: bool,
    attributes: wire::Message,
    /// What is told only about requests that could be understood.
    of_message: wire::Message,
}

impl Span {
    pub(super) fn start(place: Place, settings: &TelemetrySettings, exchange: &Exchange<'_>) -> Self {
        let parts = &exchange.parts;
        let name = format!("{} {}", parts.method, parts.uri.path());
        let mut span = Self {
            place,
            name,
            began: SystemTime::now(),
            has_legacy: settings.has_legacy_attributes,
            attributes: wire::Message::with_room(ROOM),
            of_message: wire::Message::with_room(ROOM_OF_MESSAGE),
        };
        span.tell_request(exchange);
        for (name, value) in &settings.variables {
            span.say(&format!("environment.{name}"), value.as_str());
        }
        span.prepare(settings, exchange);
        span
    }

    pub(super) fn say<'a>(&mut self, name: &str, value: impl Into<Value<'a>>) {
        say(&mut self.attributes, name, value.into());
    }

    /// Under its name, and under the older one where that is wanted.
    fn twice<'a>(&mut self, name: &str, older: &str, value: impl Into<Value<'a>>) {
        let value = value.into();
        self.say(name, value);
        self.legacy(older, value);
    }

    fn legacy<'a>(&mut self, name: &str, value: impl Into<Value<'a>>) {
        if self.has_legacy {
            self.say(name, value);
        }
    }

    fn tell_request(&mut self, exchange: &Exchange<'_>) {
        let parts = &exchange.parts;
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
        let (scheme, path) = (exchange.peer.scheme, parts.uri.path());
        let query = parts.uri.query().filter(|query| !query.is_empty()).map(arguments::query);
        let target = query.as_ref().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        self.twice("http.request.method", "http.method", parts.method.as_str());
        self.twice("url.full", "http.url", &*format!("{scheme}://{host}{target}"));
        self.twice("url.scheme", "http.scheme", scheme);
        self.twice("server.address", "http.host", host);
        self.twice("url.path", "http.target", path);
        self.twice("user_agent.original", "http.user_agent", text(USER_AGENT).unwrap_or_default());
        if let Some(size) = text(CONTENT_LENGTH).and_then(|size| size.parse::<u64>().ok()).filter(|size| *size > 0) {
            self.twice("http.request.body.size", "http.request_content_length", size);
        }
        if let Some(query) = &query {
            self.twice("url.query", "http.query", query.as_str());
        }
    }

    /// Writes down what only the request knows, for when it turns out to be a message.
    fn prepare(&mut self, settings: &TelemetrySettings, exchange: &Exchange<'_>) {
        let headers = &exchange.parts.headers;
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
        let transport = text(TRANSPORT).unwrap_or(&settings.transport);
        let address = exchange.peer.address;
        let told = &mut self.of_message;
        say(told, "mcp.server.name", text(SERVER_NAME).unwrap_or(&settings.server).into());
        say(told, "network.transport", network(transport).into());
        if let Some(version) = super::http_version(transport, exchange.parts.version) {
            say(told, "network.protocol.name", "http".into());
            say(told, "network.protocol.version", version.into());
        }
        if transport == "sse" {
            say(told, "mcp.backend.protocol.version", "1.1".into());
        }
        say(told, "client.address", (&*exchange.peer.ip_text()).into());
        say(told, "client.port", u64::from(address.port()).into());
        for (name, header) in
            [("mcp.session.id", header::SESSION_ID), ("mcp.protocol.version", header::PROTOCOL_VERSION)]
        {
            if let Some(value) = text(header.as_str()) {
                say(told, name, value.into());
            }
        }
        if self.has_legacy {
            say(told, "mcp.transport", transport.into());
        }
    }

    /// Tells what the request was about, in its last version.
    pub(super) fn tell_message(&mut self, message: &Message, operation: &Operation<'_>) {
        let of_message = std::mem::take(&mut self.of_message);
        self.attributes.append(&of_message);
        let method = &*operation.method;
        let subject = operation.subject.as_deref().unwrap_or_default();
        self.name = if subject.is_empty() { method.to_owned() } else { format!("{method} {subject}") };
        self.twice("mcp.method.name", "mcp.method", method);
        self.twice("rpc.system.name", "rpc.system", "jsonrpc");
        self.legacy("rpc.service", "mcp");
        self.say("jsonrpc.protocol.version", "2.0");
        if let Some(id) = message.id() {
            self.twice("jsonrpc.request.id", "mcp.request.id", &*json::decode(id).unwrap_or(Cow::Borrowed(id)));
        }
        if !subject.is_empty() {
            self.legacy("mcp.resource.id", subject);
        }
        if let Some(uri) = message.param_text(Param::Uri).filter(|_| method.starts_with("resources/")) {
            self.say("mcp.resource.uri", &*arguments::address(uri));
        }
        if let Some(tool) = operation.tool.as_deref() {
            self.twice("gen_ai.tool.name", "mcp.tool.name", tool);
            self.say("gen_ai.operation.name", "execute_tool");
            if let Some(told) = message.param(Param::Arguments).and_then(arguments::told) {
                self.twice("gen_ai.tool.call.arguments", "mcp.tool.arguments", &*told);
            }
        }
        if let Some(prompt) = operation.prompt.as_deref() {
            self.twice("gen_ai.prompt.name", "mcp.prompt.name", prompt);
        }
        if let Some(client) = client(message, operation) {
            self.say("mcp.client.name", &*client);
        }
    }

    pub(super) fn tell_check(&mut self, check: &Check) {
        let (decision, by) = match &check.verdict {
            Verdict::Rejected(scope) => ("rejected", format!("{}_{}", scope.scope, scope.operation)),
            Verdict::Allowed(_) | Verdict::Unknown(_) => ("allowed", "none".to_owned()),
        };
        self.say("rate_limit.decision", decision);
        self.say("rate_limit.rejected_by", &*by);
        self.say("rate_limit.fail_open", matches!(check.verdict, Verdict::Unknown(_)));
    }

    pub(super) fn tell_answer(&mut self, status: u16, size: u64, took: Duration) {
        self.twice("http.response.status_code", "http.status_code", u64::from(status));
        self.twice("http.response.body.size", "http.response_content_length", size);
        self.legacy("http.duration_ms", took.as_secs_f64() * 1000.0);
        if status >= 500 {
            self.say("error.type", &*status.to_string());
        }
    }

    pub(super) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// The step as it is told, with the status of its answer if it has one. Its attributes stand before everything else:
    /// fields have no order, and so they stay where they were written.
    pub(super) fn end(self, status: Option<u16>) -> wire::Message {
        let mut span = self.attributes;
        span.bytes(1, &self.place.context.trace);
        span.bytes(2, &self.place.context.span);
        span.text(3, &self.place.state);
        let mut flags = RECORDED;
        if let Some(parent) = self.place.parent {
            span.bytes(4, &parent.span);
            flags |= PARENT_IS_REMOTE;
        }
        span.text(5, cut(&self.name, VALUE));
        span.varint(6, SERVER);
        span.fixed64(7, nanoseconds(self.began));
        span.fixed64(8, nanoseconds(SystemTime::now()));
        let mut told = wire::Message::default();
        match status {
            Some(status) if status >= 500 => {
                told.text(2, &format!("HTTP {status}"));
                told.varint(3, ERROR);
            }
            Some(400..=499) => {}
            _ => told.varint(3, OK),
        }
        span.message(15, &told);
        span.fixed32(16, flags);
        span
    }
}

fn say(to: &mut wire::Message, name: &str, value: Value<'_>) {
    let value = match value {
        Value::Text(text) => Value::Text(cut(text, VALUE)),
        other => other,
    };
    to.attribute(ATTRIBUTES, name, value);
}

/// Who the client says it is.
fn client<'a>(message: &'a Message, operation: &'a Operation<'_>) -> Option<Cow<'a, str>> {
    if let Some(info) = message.meta(MetaKey::ClientInfo) {
        let name = json::find(info, &["name"]).ok().flatten()?;
        return json::decode(name.of(info));
    }
    operation.subject.as_deref().filter(|_| operation.method == method::INITIALIZE).map(Cow::Borrowed)
}
