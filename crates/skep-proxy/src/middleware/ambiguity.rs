//! Messages that one reader may take for one thing and another for something else. Whoever decides by a message has to
//! refuse such.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use skep_mcp::Message;
use skep_mcp::json::{self, EditError};

/// The members that decide what a message is, and which a careless reader takes under another spelling.
const DECISIVE: [&str; 9] = ["jsonrpc", "id", "method", "params", "name", "uri", "arguments", "notifications", "_meta"];

/// Whether somebody who does not care about capitals could read another message than we do. Some JSON libraries match
/// names that way, and take the last one.
pub(crate) fn is_ambiguous(message: &Message) -> Result<bool, EditError> {
    if !message.has_other_letters() {
        return Ok(false);
    }
    let has_double = |object: &str| -> Result<bool, EditError> {
        Ok(json::members(object)?.iter().any(|(name, _)| match fold(name) {
            Cow::Owned(plain) => DECISIVE.contains(&plain.as_str()),
            Cow::Borrowed(_) => false,
        }))
    };
    let text = message.as_str();
    let params = message.params_span().map(|span| span.of(text)).filter(|params| params.starts_with('{'));
    Ok(has_double(text)? || params.map_or(Ok(false), has_double)?)
}

/// Reads a document in which no object has a member twice. Nothing when it is none.
pub(crate) fn read_once<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    let is_clear = json::twice(text) == Ok(None);
    serde_json::from_str(text).ok().filter(|_| is_clear)
}

/// A name in small letters, with the two letters beyond ASCII that are the capitals of ones within.
pub(crate) fn fold(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let plain = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(plain).collect()
}

/// Whether somebody who does not care about capitals takes two of these names for one.
pub(crate) fn has_twins<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    let mut names: Vec<_> = names.into_iter().map(fold).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::read(text.to_owned().into()).unwrap()
    }

    fn request(method: &str, params: &str) -> Message {
        message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
    }

    #[test]
    fn another_spelling_of_what_matters_is_noticed() {
        for (params, expected) in [
            (r#"{"name":"a","Name":"b"}"#, true),
            (r#"{"name":"a","argument\u017f":{}}"#, true),
            (r#"{"name":"a","NAME ":"b","title":1}"#, false),
            (r#"{"name":"a","arguments":{"Name":"x"}}"#, false),
        ] {
            assert_eq!(is_ambiguous(&request("tools/call", params)), Ok(expected), "{params}");
        }
        let twice = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#);
        assert_eq!(is_ambiguous(&twice), Ok(true));
    }
}
