//! The headers of the protocol, and how a value is written into one.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};

use crate::fault::{Fault, HEADER_MISMATCH};
use crate::json;
use crate::message::Message;
use crate::method;

/// The revision of a request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session of a request.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The last event that a client has seen.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The method of a request that stands alone.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What a request that stands alone is about.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// The value of a header that may be given once, without the space around it.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|text| Some(text.trim()))
            .map_err(|_| mismatch(name, "has characters that do not belong")),
        (Some(_), Some(_)) => Err(mismatch(name, "is given more than once")),
    }
}

/// Checks that the headers of a request that stands alone say what its body says.
pub fn check(headers: &HeaderMap, message: &Message) -> Result<(), Fault> {
    agree(headers, &METHOD, Some(message.method()), |header| Some(Cow::Borrowed(header)))
}

/// Checks the header that repeats what the request is about.
pub fn check_subject(headers: &HeaderMap, message: &Message) -> Result<(), Fault> {
    let Some(subject) = method::subject(message.method()) else { return Ok(()) };
    agree(headers, &NAME, message.param_text(subject).as_deref(), decode)
}

fn agree(
    headers: &HeaderMap,
    name: &HeaderName,
    value: Option<&str>,
    decode: fn(&str) -> Option<Cow<'_, str>>,
) -> Result<(), Fault> {
    match (single(headers, name)?, value) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(mismatch(name, "is missing")),
        (Some(_), None) => Err(mismatch(name, "has no counterpart in the body")),
        (Some(header), Some(value)) if decode(header).is_some_and(|header| header == value) => Ok(()),
        (Some(_), Some(_)) => Err(mismatch(name, "does not match the body")),
    }
}

pub(crate) fn mismatch(name: &HeaderName, problem: &str) -> Fault {
    Fault::new(HEADER_MISMATCH, format!("the header {name} {problem}"))
}

/// What a value says, once the encoding of values that a header cannot hold is undone.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix(ENCODED_START).and_then(|rest| rest.strip_suffix(ENCODED_END)) {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
    }
}

/// A string as a header says it.
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !(text.starts_with(ENCODED_START) && text.ends_with(ENCODED_END));
    if is_plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{ENCODED_START}{}{ENCODED_END}", STANDARD.encode(text)))
    }
}

/// A value of the body as a header says it; only strings, integers and booleans can be.
pub fn encode_json(value: &str) -> Option<Cow<'_, str>> {
    match value.bytes().next()? {
        b'"' => json::decode(value).map(|text| Cow::Owned(encode(&text).into_owned())),
        b't' | b'f' => Some(Cow::Borrowed(value)),
        b'-' | b'0'..=b'9' if !value.contains(['.', 'e', 'E']) => Some(Cow::Borrowed(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        for text in ["weigh_hive", "a b", " a", "Zürich", "a\nb", "=?base64?x?=", "=?base64?x", ""] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        assert_eq!(encode("Zürich"), "=?base64?WsO8cmljaA==?=");
        assert_eq!(decode("=?base64?!?="), None);
        assert_eq!(encode_json("1.5"), None);
        assert_eq!(encode_json("-7").as_deref(), Some("-7"));
    }

    #[test]
    fn headers_that_disagree_with_the_body_are_refused() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Zürich"}}"#;
        let message = Message::read(Bytes::from_static(body.as_bytes())).unwrap();
        let checked = |pairs: &[(HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, HeaderValue::from_static(value));
            }
            check(&headers, &message).and_then(|()| check_subject(&headers, &message)).is_ok()
        };
        let name = "=?base64?WsO8cmljaA==?=";
        assert!(checked(&[(METHOD, " tools/call "), (NAME, name)]));
        assert!(!checked(&[(METHOD, "tools/list"), (NAME, name)]));
        assert!(!checked(&[(METHOD, "tools/call")]));
        assert!(!checked(&[(NAME, name)]));
        assert!(!checked(&[(METHOD, "tools/call"), (NAME, "Bern")]));
        assert!(!checked(&[(METHOD, "tools/call"), (NAME, name), (NAME, name)]));
    }
}
