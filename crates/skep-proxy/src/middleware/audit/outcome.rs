//! How a request ended.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Message, Payload};

use crate::middleware::subject::cut;

/// So much of the words of an error is recorded, in bytes.
const WORDS: usize = 256;

/// The word for what the caller may not do.
pub(super) const DENIED: &str = "denied";

/// An error that an answer holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
}

/// The word for it.
pub(super) fn of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 | 403 => DENIED,
        400..=499 => "failure",
        500..=599 => "error",
        _ => "success",
    }
}

/// The error that an answer holds, if it does: as JSON, in a batch, or in a stream of events.
pub(super) fn fault(text: &[u8]) -> Option<Fault> {
    // Most answers do not even mention one.
    memchr::memmem::find(text, b"\"error\"")?;
    match Payload::read(Bytes::copy_from_slice(text)) {
        Ok(Payload::Single(message)) => in_message(&message),
        Ok(Payload::Batch(messages)) => messages.iter().flatten().find_map(in_message),
        Err(_) => in_events(text),
    }
}

fn in_events(text: &[u8]) -> Option<Fault> {
    let mut splitter = Splitter::new(text.len());
    splitter.push(text);
    let events = std::iter::from_fn(|| splitter.next_piece());
    events.into_iter().find_map(|piece| {
        let (Piece::Event(event) | Piece::Part(event)) = piece;
        let data = Event::read(&event).data?.into_owned();
        in_message(&Message::read(data.into()).ok()?)
    })
}

fn in_message(message: &Message) -> Option<Fault> {
    let error: Value = serde_json::from_str(message.error()?).ok()?;
    let words = error["message"].as_str().unwrap_or_default();
    Some(Fault { code: error["code"].as_i64().unwrap_or_default(), message: cut(words, WORDS).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_in_every_form() {
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"data":"{}","code":-3,"message":"no"}}}}"#, "x".repeat(2000));
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"error":"mine"}}"#;
        for (text, is_error) in [
            (error.clone(), true),
            (format!("[{result},{error}]"), true),
            (format!(": alive\n\ndata: {result}\n\nevent: message\ndata: {error}\n\n"), true),
            (result.to_owned(), false),
            ("\"error\"".to_owned(), false),
            (String::new(), false),
        ] {
            let found = fault(text.as_bytes());
            assert_eq!(
                found.as_ref().map(|found| (found.code, found.message.as_str())),
                is_error.then_some((-3, "no"))
            );
        }
    }

    #[test]
    fn a_status_has_a_word() {
        for (status, word) in [
            (200, "success"),
            (202, "success"),
            (401, "denied"),
            (403, "denied"),
            (404, "failure"),
            (429, "failure"),
            (502, "error"),
        ] {
            assert_eq!(of(StatusCode::from_u16(status).unwrap()), word);
        }
    }
}
