//! One message, read once and kept as it came.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;

use crate::id::Id;
use crate::json::{self, JsonError, Names, Scanner, Span};
use crate::meta::{Meta, MetaKey};
use crate::payload::ReadError;

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It wants an answer.
    Request,
    /// It wants none.
    Notification,
    /// It is an answer.
    Response,
}

/// The parameters that those on the way of a message look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// The tool or prompt.
    Name,
    /// The resource.
    Uri,
    /// The task.
    TaskId,
    /// That a call is to be made a task.
    Task,
    /// What a tool is called with.
    Arguments,
    /// The request that is called off.
    RequestId,
    /// What progress is reported under.
    ProgressToken,
    /// The revision that a handshake asks for.
    ProtocolVersion,
    /// From which level on a session wants log messages.
    Level,
}

impl Param {
    const ALL: [Self; 9] = [
        Self::Name,
        Self::Uri,
        Self::TaskId,
        Self::Task,
        Self::Arguments,
        Self::RequestId,
        Self::ProgressToken,
        Self::ProtocolVersion,
        Self::Level,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Uri => "uri",
            Self::TaskId => "taskId",
            Self::Task => "task",
            Self::Arguments => "arguments",
            Self::RequestId => "requestId",
            Self::ProgressToken => "progressToken",
            Self::ProtocolVersion => "protocolVersion",
            Self::Level => "level",
        }
    }
}

/// A JSON-RPC message and where its parts are.
#[derive(Debug, Clone)]
pub struct Message {
    /// It was checked to be text, once.
    text: ByteString,
    kind: Kind,
    /// Apart, because messages are handed on and their parts are many.
    parts: Arc<Parts>,
    /// The method, when it is not written plainly.
    decoded_method: Option<Box<str>>,
}

#[derive(Debug, Clone, Default)]
struct Parts {
    version: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    known: [Option<Span>; Param::ALL.len()],
    has_meta: bool,
    meta: Meta,
    /// Whether a member of the message or of its parameters has a name that is not all in small letters of ASCII.
    has_other_letters: bool,
}

impl Message {
    /// Reads one message. A batch is none; for those see [`crate::Payload`].
    pub fn read(text: Bytes) -> Result<Self, ReadError> {
        let text = ByteString::try_from(text).map_err(|error| ReadError::not_json(&error))?;
        let json: &str = &text;
        let mut parts = Parts::default();
        let mut scanner = Scanner::new(json);
        if scanner.peek() != Some(b'{') {
            scanner.value().and_then(|_| scanner.end()).map_err(|error| ReadError::not_json(&error))?;
            return Err(ReadError::no_message("a message is an object", None));
        }
        let read = parts.read(&mut scanner).and_then(|()| scanner.end());
        if let Err(error) = read {
            return Err(ReadError::json(error, parts.readable_id(json)));
        }
        let kind = parts.kind(json).map_err(|reason| ReadError::no_message(reason, parts.readable_id(json)))?;
        let decoded_method = match parts.method.map(|method| json::decode(method.of(json))) {
            Some(None) => {
                return Err(ReadError::no_message("method is half of a character", parts.readable_id(json)));
            }
            Some(Some(Cow::Owned(method))) => Some(method.into()),
            Some(Some(Cow::Borrowed(_))) | None => None,
        };
        Ok(Self { text, kind, parts: Arc::new(parts), decoded_method })
    }

    /// The message as it came.
    pub fn text(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// The same, as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A request under another id. What it wants progress reported under is replaced by the same.
    pub fn renumbered(&self, number: u64) -> Bytes {
        let text = number.to_string();
        let mut places = [self.id_span(), self.meta_span(MetaKey::ProgressToken)];
        places.sort_by_key(|place| place.map(|place| place.start));
        self.with(places.into_iter().flatten().map(|place| (place, text.as_bytes())))
    }

    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it asks for; empty for a response.
    pub fn method(&self) -> &str {
        match (&self.decoded_method, self.parts.method) {
            (Some(method), _) => method,
            // It was checked to be a string, so that it has quotes.
            (None, Some(Span { start, end })) => self.json(Span { start: start + 1, end: end - 1 }),
            (None, None) => "",
        }
    }

    /// The id as JSON, unless it is a notification.
    pub fn id(&self) -> Option<&str> {
        self.parts.id.map(|id| self.json(id))
    }

    /// The id, to be kept.
    pub fn owned_id(&self) -> Option<Id> {
        self.id().map(Id::new)
    }

    /// Where the id is.
    pub fn id_span(&self) -> Option<Span> {
        self.parts.id
    }

    /// Where the parameters are.
    pub fn params_span(&self) -> Option<Span> {
        self.parts.params
    }

    /// A parameter as JSON.
    pub fn param(&self, param: Param) -> Option<&str> {
        self.param_span(param).map(|span| self.json(span))
    }

    /// Where a parameter is.
    pub fn param_span(&self, param: Param) -> Option<Span> {
        self.parts.known[param as usize]
    }

    /// What a parameter says that is a string.
    pub fn param_text(&self, param: Param) -> Option<Cow<'_, str>> {
        json::decode(self.param(param)?)
    }

    /// Whether the parameters have an object `_meta`.
    pub fn has_meta(&self) -> bool {
        self.parts.has_meta
    }

    /// Whether a member of the message or of its parameters has a name that is not all in small letters of ASCII.
    pub fn has_other_letters(&self) -> bool {
        self.parts.has_other_letters
    }

    /// A member of `_meta` as JSON.
    pub fn meta(&self, key: MetaKey) -> Option<&str> {
        self.meta_span(key).map(|span| self.json(span))
    }

    /// Where a member of `_meta` is.
    pub fn meta_span(&self, key: MetaKey) -> Option<Span> {
        self.parts.meta.get(key)
    }

    /// What a member of `_meta` says that is a string.
    pub fn meta_text(&self, key: MetaKey) -> Option<Cow<'_, str>> {
        json::decode(self.meta(key)?)
    }

    /// The result of a response, as JSON.
    pub fn result(&self) -> Option<&str> {
        self.parts.result.map(|span| self.json(span))
    }

    /// The error of a response, as JSON.
    pub fn error(&self) -> Option<&str> {
        self.parts.error.map(|span| self.json(span))
    }

    /// The message with other values at some places; the places have to be in order.
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = (Span, &'a [u8])>) -> Bytes {
        json::splice(self.text.as_bytes(), changes).into()
    }

    fn json(&self, span: Span) -> &str {
        span.of(&self.text)
    }
}

impl Parts {
    fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
        let mut names = Names::default();
        scanner.object(|scanner, name| {
            let name = names.add(scanner, name)?;
            self.has_other_letters |= !is_small(&name);
            let part = match &*name {
                "params" if scanner.peek() == Some(b'{') => return self.read_params(scanner),
                "params" => &mut self.params,
                "jsonrpc" => &mut self.version,
                "id" => &mut self.id,
                "method" => &mut self.method,
                "result" => &mut self.result,
                "error" => &mut self.error,
                _ => return scanner.value().map(drop),
            };
            *part = Some(scanner.value()?);
            Ok(())
        })?;
        Ok(())
    }

    fn read_params(&mut self, scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
        let mut names = Names::default();
        let params = scanner.object(|scanner, name| {
            let name = names.add(scanner, name)?;
            self.has_other_letters |= !is_small(&name);
            if name == "_meta" && scanner.peek() == Some(b'{') {
                self.has_meta = true;
                self.meta = Meta::read(scanner)?;
                return Ok(());
            }
            let value = scanner.value()?;
            if let Some(param) = Param::ALL.into_iter().find(|param| param.name() == name) {
                self.known[param as usize] = Some(value);
            }
            Ok(())
        })?;
        self.params = Some(params);
        Ok(())
    }

    fn kind(&self, json: &str) -> Result<Kind, &'static str> {
        let is = |part: Option<Span>, first: &[u8]| {
            part.and_then(|part| part.of(json).bytes().next()).is_some_and(|byte| first.contains(&byte))
        };
        if self.version.and_then(|version| json::decode(version.of(json))).as_deref() != Some("2.0") {
            return Err("jsonrpc must be \"2.0\"");
        }
        if self.id.is_some() && !is(self.id, b"\"-0123456789") {
            return Err("an id is a string or a number");
        }
        if self.method.is_some() {
            return match self.id {
                _ if !is(self.method, b"\"") => Err("a method is a string"),
                // Some clients write that there are none.
                _ if self.params.is_some() && !is(self.params, b"{n") => Err("params must be an object"),
                Some(_) => Ok(Kind::Request),
                None => Ok(Kind::Notification),
            };
        }
        match (self.id, self.result, self.error) {
            (Some(_), Some(_), None) => Ok(Kind::Response),
            (Some(_), None, Some(_)) if is(self.error, b"{") => Ok(Kind::Response),
            _ => Err("it is neither a request, a notification nor a response"),
        }
    }

    /// The id of something that may be no message, for the answer that says so.
    fn readable_id(&self, json: &str) -> Option<Id> {
        let id = self.id?.of(json);
        (!id.starts_with(['{', '[', 't', 'f', 'n'])).then(|| Id::new(id))
    }
}

/// Whether a name is all in small letters of ASCII, as far as it has letters.
fn is_small(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{INVALID_REQUEST, PARSE_ERROR};

    fn read(text: &str) -> Result<Message, ReadError> {
        Message::read(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_parts_of_a_request_are_found_where_they_are() {
        let text = r#" {"params":{"name":"a\"b","_meta":{"progressToken":7.0,"x":[]},"arguments":{"id":9}},"id":"1e3","jsonrpc":"2.0","method":"tools\/call"}"#;
        let message = read(text).unwrap();
        assert_eq!((message.kind(), message.method(), message.id()), (Kind::Request, "tools/call", Some("\"1e3\"")));
        assert_eq!(message.param_text(Param::Name).as_deref(), Some("a\"b"));
        assert_eq!(message.param(Param::Arguments), Some(r#"{"id":9}"#));
        assert_eq!(message.meta(MetaKey::ProgressToken), Some("7.0"));
        assert_eq!(message.text(), text);
        let changed = message.with([
            (message.meta_span(MetaKey::ProgressToken).unwrap(), &b"1"[..]),
            (message.id_span().unwrap(), b"2"),
        ]);
        assert_eq!(changed, text.replace("7.0", "1").replace("\"1e3\"", "2"));
    }

    #[test]
    fn letters_that_could_be_read_in_another_way_are_told() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A","_meta":{"X":1}}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"Name":"a"}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u004dethod":"a"}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"argument\u017f":1}}"#, true),
        ] {
            assert_eq!(read(text).unwrap().has_other_letters(), expected, "{text}");
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        for (text, kind) in [
            (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, Kind::Request),
            (r#"{"jsonrpc":"2.0","id":-1.5e3,"method":"ping","params":null}"#, Kind::Request),
            (r#"{"jsonrpc":"2.0","method":"x","params":{}}"#, Kind::Notification),
            (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, Kind::Response),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, Kind::Response),
        ] {
            assert_eq!(read(text).unwrap().kind(), kind, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id_where_it_has_one() {
        for (text, code, id) in [
            ("", PARSE_ERROR, None),
            ("{", PARSE_ERROR, None),
            (r#"{"jsonrpc":"2.0","id":3,"method":"#, PARSE_ERROR, Some("3")),
            ("[]", INVALID_REQUEST, None),
            ("1", INVALID_REQUEST, None),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":1,"n\u0061me":2}}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1,"a":1}}}"#, INVALID_REQUEST, Some("1")),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.fault().code, error.id().map(Id::as_json)), (code, id), "{text}");
        }
        assert!(Message::read(Bytes::from_static(b"{\"a\":\"\xff\"}")).is_err());
    }
}
