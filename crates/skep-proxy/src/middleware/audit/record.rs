//! A record as it is written. By hand, because every request has one, and most of it is known beforehand.

use std::borrow::Cow;
use std::io::Write as _;

use serde_json::Value;

pub(super) struct Record<'a> {
    pub(super) time: &'a str,
    pub(super) audit_id: &'a str,
    pub(super) kind: &'static str,
    pub(super) outcome: &'a str,
    pub(super) component: &'a str,
    pub(super) source: &'a Source,
    pub(super) subjects: Subjects<'a>,
    pub(super) target: Target<'a>,
    pub(super) delegation: Option<Value>,
    pub(super) course: Course<'a>,
    /// Whether the request was refused because it named a session that is somebody else's.
    pub(super) session_of_another: bool,
    pub(super) data: Data,
}

/// Where a request came from.
pub(super) struct Source {
    pub(super) address: String,
    pub(super) user_agent: Option<String>,
    pub(super) request_id: Option<String>,
}

/// Who asked.
pub(super) struct Subjects<'a> {
    pub(super) user_id: Option<&'a str>,
    pub(super) user: &'a str,
    pub(super) client_name: Option<&'a str>,
    pub(super) client_version: Option<&'a str>,
}

/// What was asked for.
pub(super) struct Target<'a> {
    pub(super) endpoint: Cow<'a, str>,
    pub(super) method: Cow<'a, str>,
    pub(super) kind: &'static str,
    pub(super) name: Option<Cow<'a, str>>,
}

pub(super) enum Course<'a> {
    /// How a stream began.
    Stream { transport: &'a str, user_agent: Option<&'a str> },
    /// How a request was answered.
    Answer {
        duration_ms: u128,
        transport: &'static str,
        response_size_bytes: Option<usize>,
        jsonrpc_error_code: Option<i64>,
        jsonrpc_error_message: Option<String>,
    },
}

/// What was said.
#[derive(Default)]
pub(super) struct Data {
    pub(super) request: Option<Value>,
    pub(super) response: Option<Value>,
}

impl Record<'_> {
    /// Adds it to a line, as JSON.
    pub(super) fn write(&self, line: &mut Vec<u8>) {
        Object::write(line, |record| {
            record.text("time", self.time);
            record.text("level", "AUDIT");
            record.text("msg", "audit_event");
            record.text("audit_id", self.audit_id);
            record.text("type", self.kind);
            record.text("logged_at", self.time);
            record.text("outcome", self.outcome);
            record.text("component", self.component);
            record.object("source", |source| self.source.write(source));
            record.object("subjects", |subjects| self.subjects.write(subjects));
            record.object("target", |target| self.target.write(target));
            record.value("delegation", self.delegation.as_ref());
            record.object("metadata", |metadata| {
                metadata.object("extra", |extra| {
                    self.course.write(extra);
                    if self.session_of_another {
                        extra.plain("session_of_another", true);
                    }
                });
            });
            let Data { request, response } = &self.data;
            if request.is_some() || response.is_some() {
                record.object("data", |data| {
                    data.value("request", request.as_ref());
                    data.value("response", response.as_ref());
                });
            }
        });
    }
}

impl Source {
    fn write(&self, source: &mut Object<'_>) {
        source.text("type", "network");
        source.text("value", &self.address);
        source.object("extra", |extra| {
            extra.optional("user_agent", self.user_agent.as_deref());
            extra.optional("request_id", self.request_id.as_deref());
        });
    }
}

impl Subjects<'_> {
    fn write(&self, subjects: &mut Object<'_>) {
        subjects.optional("user_id", self.user_id);
        subjects.text("user", self.user);
        subjects.optional("client_name", self.client_name);
        subjects.optional("client_version", self.client_version);
    }
}

impl Target<'_> {
    fn write(&self, target: &mut Object<'_>) {
        target.text("endpoint", &self.endpoint);
        target.text("method", &self.method);
        target.text("type", self.kind);
        target.optional("name", self.name.as_deref());
    }
}

impl Course<'_> {
    fn write(&self, extra: &mut Object<'_>) {
        match self {
            Self::Stream { transport, user_agent } => {
                extra.text("transport", transport);
                match user_agent {
                    Some(user_agent) => extra.text("user_agent", user_agent),
                    None => extra.plain("user_agent", "null"),
                }
            }
            Self::Answer { duration_ms, transport, response_size_bytes, jsonrpc_error_code, jsonrpc_error_message } => {
                extra.plain("duration_ms", duration_ms);
                extra.text("transport", transport);
                if let Some(bytes) = response_size_bytes {
                    extra.plain("response_size_bytes", bytes);
                }
                if let Some(code) = jsonrpc_error_code {
                    extra.plain("jsonrpc_error_code", code);
                }
                extra.optional("jsonrpc_error_message", jsonrpc_error_message.as_deref());
            }
        }
    }
}

/// An object while it is written. The names of its members are ours, and as JSON they are what they are.
struct Object<'a>(&'a mut Vec<u8>);

impl Object<'_> {
    fn write(line: &mut Vec<u8>, members: impl FnOnce(&mut Object<'_>)) {
        line.push(b'{');
        members(&mut Object(line));
        line.push(b'}');
    }

    fn name(&mut self, name: &'static str) {
        let start: &[u8] = if self.0.last() == Some(&b'{') { b"\"" } else { b",\"" };
        self.0.extend_from_slice(start);
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn object(&mut self, name: &'static str, members: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        Object::write(self.0, members);
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.name(name);
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        // Nearly all of it is, and that is found out many bytes at a time.
        if text.bytes().fold(true, |is_all_plain, byte| is_all_plain & is_plain(byte)) {
            self.0.push(b'"');
            self.0.extend_from_slice(text.as_bytes());
            self.0.push(b'"');
        } else {
            // Nothing fails that is written to memory.
            let _ = serde_json::to_writer(&mut *self.0, text);
        }
    }

    fn optional(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// What needs no quotes.
    fn plain(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }

    fn value(&mut self, name: &'static str, value: Option<&Value>) {
        if let Some(value) = value {
            self.name(name);
            let _ = serde_json::to_writer(&mut *self.0, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source() -> Source {
        Source { address: "10.0.0.1".to_owned(), user_agent: Some("a \"b\" \u{1F41D}\n".to_owned()), request_id: None }
    }

    fn record(source: &Source) -> Record<'_> {
        Record {
            time: "2026-11-18T00:00:00Z",
            audit_id: "7",
            kind: "mcp_tool_call",
            outcome: "success",
            component: "hive\\1",
            source,
            subjects: Subjects { user_id: Some("ann"), user: "Ann", client_name: None, client_version: Some("1") },
            target: Target {
                endpoint: "/mcp".into(),
                method: "tools/call".into(),
                kind: "tool",
                name: Some("we\u{0}igh".into()),
            },
            delegation: None,
            course: Course::Answer {
                duration_ms: 3,
                transport: "http",
                response_size_bytes: None,
                jsonrpc_error_code: Some(-32603),
                jsonrpc_error_message: Some("no".to_owned()),
            },
            session_of_another: true,
            data: Data::default(),
        }
    }

    fn written(record: &Record<'_>) -> Value {
        let mut line = Vec::new();
        record.write(&mut line);
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_record_is_json_whatever_is_said_in_it() {
        let expected = json!({
            "time": "2026-11-18T00:00:00Z", "level": "AUDIT", "msg": "audit_event", "audit_id": "7",
            "type": "mcp_tool_call", "logged_at": "2026-11-18T00:00:00Z", "outcome": "success", "component": "hive\\1",
            "source": {"type": "network", "value": "10.0.0.1", "extra": {"user_agent": "a \"b\" \u{1F41D}\n"}},
            "subjects": {"user_id": "ann", "user": "Ann", "client_version": "1"},
            "target": {"endpoint": "/mcp", "method": "tools/call", "type": "tool", "name": "we\u{0}igh"},
            "metadata": {"extra": {
                "duration_ms": 3, "transport": "http", "jsonrpc_error_code": -32603, "jsonrpc_error_message": "no",
                "session_of_another": true,
            }},
        });
        assert_eq!(written(&record(&source())), expected);
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let source = Source { user_agent: None, ..source() };
        let course = Course::Stream { transport: "sse", user_agent: None };
        let data = Data { request: Some(json!({"id": 1})), response: None };
        let record = Record { course, data, session_of_another: false, ..record(&source) };
        let told = written(&record);
        assert_eq!(told["source"]["extra"], json!({}));
        assert_eq!(told["metadata"], json!({"extra": {"transport": "sse", "user_agent": null}}));
        assert_eq!(told["data"], json!({"request": {"id": 1}}));
    }
}
