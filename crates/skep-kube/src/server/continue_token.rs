//! The token with which a client asks for the next page of a list.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde_json::{Value, json};

use crate::decode::{DecodeError, decode};
use crate::go_text::type_name;

/// As the real server, lenient about the bits that the last letter has too many.
const BASE64: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
const VERSION: &str = "meta.k8s.io/v1";

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision of all pages of the list; none when the rest may be newer than the beginning.
    pub revision: Option<u64>,
    pub namespace: String,
    pub name: String,
}

/// Why a text is not a token of this server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TokenError {
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    #[error("{0}")]
    Json(#[from] DecodeError),
    #[error("json: cannot unmarshal {0} into Go value of type storage.continueToken")]
    NotAnObject(&'static str),
    #[error("json: cannot unmarshal {found} into Go struct field continueToken.{member} of type {type_}")]
    Member { found: &'static str, member: &'static str, type_: &'static str },
    #[error("server does not recognize this encoded version {0}")]
    Version(String),
    #[error("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    Revision,
    #[error("encoded start key empty (version meta.k8s.io/v1)")]
    NoStart,
    #[error("{0}")]
    Start(String),
}

impl ContinueToken {
    pub fn write(&self) -> String {
        let revision = self.revision.map_or(json!(-1), Value::from);
        let start = format!("{}/{}", self.namespace, self.name);
        BASE64.encode(json!({ "v": VERSION, "rv": revision, "start": start }).to_string())
    }

    pub fn read(text: &str) -> Result<Self, TokenError> {
        let bytes = BASE64.decode(text).map_err(|error| TokenError::Base64(position(&error, text)))?;
        let document = decode(&bytes)?.value;
        if !document.is_object() && !document.is_null() {
            return Err(TokenError::NotAnObject(type_name(&document)));
        }
        let version = text_member(&document, "v")?;
        if version != VERSION {
            return Err(TokenError::Version(version.to_owned()));
        }
        let revision = match &document["rv"] {
            Value::Null => 0,
            Value::Number(number) if number.is_i64() => number.as_i64().unwrap_or_default(),
            other => return Err(TokenError::Member { found: type_name(other), member: "rv", type_: "int64" }),
        };
        let start = text_member(&document, "start")?;
        if revision == 0 {
            return Err(TokenError::Revision);
        }
        if start.is_empty() {
            return Err(TokenError::NoStart);
        }
        let (namespace, name) = start.split_once('/').unwrap_or(("", start));
        if matches!(namespace, "." | "..") || matches!(name, "" | "." | "..") || name.contains('/') {
            return Err(TokenError::Start(start.to_owned()));
        }
        // A negative revision stands for a list that goes on with what is there now.
        Ok(Self { revision: u64::try_from(revision).ok(), namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

fn text_member<'a>(document: &'a Value, member: &'static str) -> Result<&'a str, TokenError> {
    match &document[member] {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        other => Err(TokenError::Member { found: type_name(other), member, type_: "string" }),
    }
}

fn position(error: &base64::DecodeError, text: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(position, _) => *position,
        // A last letter alone is half a byte.
        _ => text.len().saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_where_to_go_on() {
        for (namespace, revision) in [("default", Some(7)), ("", None)] {
            let token = ContinueToken { revision, namespace: namespace.to_owned(), name: "web".to_owned() };
            assert_eq!(ContinueToken::read(&token.write()).unwrap(), token);
        }
    }

    /// The words are those of a real server.
    #[test]
    fn other_texts_are_refused() {
        for (text, problem) in [
            ("bad!", "illegal base64 data at input byte 3"),
            ("a=", "illegal base64 data at input byte 1"),
            ("abcde", "illegal base64 data at input byte 4"),
            ("nonsense", r"invalid character '\u009e' looking for beginning of value"),
        ] {
            let error = ContinueToken::read(text).unwrap_err();
            assert_eq!(error.to_string(), problem, "{text}");
        }
        for (document, problem) in [
            ("{}", "server does not recognize this encoded version "),
            (r#"{"v":"v2","rv":5,"start":"a"}"#, "server does not recognize this encoded version v2"),
            (r#"{"v":"meta.k8s.io/v1"}"#, "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
            (r#"{"v":"meta.k8s.io/v1","rv":5}"#, "encoded start key empty (version meta.k8s.io/v1)"),
            (r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../../x"}"#, "../../x"),
            (
                r#"{"v":"meta.k8s.io/v1","rv":"5","start":"a"}"#,
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
            ("[1]", "json: cannot unmarshal array into Go value of type storage.continueToken"),
            (r#"{"v":"#, "unexpected end of JSON input"),
        ] {
            let error = ContinueToken::read(&BASE64.encode(document)).unwrap_err();
            assert_eq!(error.to_string(), problem, "{document}");
        }
    }
}
