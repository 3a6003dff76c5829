//! How a request ended.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Id, Kind, Message, Payload};

use crate::middleware::exchange::messages;
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

/// The errors that an answer holds, each with the request that it is for: as JSON, in a batch, or in a stream of events.
pub(super) fn faults(text: &[u8]) -> Vec<(Option<Id>, Fault)> {
    // Most answers do not even mention one.
    if memchr::memmem::find(text, b"\"error\"").is_none() {
        return Vec::new();
    }
    match Payload::read(Bytes::copy_from_slice(text)) {
        Ok(payload) => messages(&payload).filter_map(in_message).collect(),
        Err(_) => in_events(text),
    }
}

/// Whether a text that has not come to its end is a whole message all the same.
pub(super) fn is_whole(text: &[u8]) -> bool {
    Payload::read(Bytes::copy_from_slice(text)).is_ok()
}

/// Whether an event holds an answer.
pub(super) fn has_answer(event: &[u8]) -> bool {
    // Most that hold none do not even mention one.
    let mentions = |word: &[u8]| memchr::memmem::find(event, word).is_some();
    (mentions(b"\"result\"") || mentions(b"\"error\""))
        && payload(event).is_some_and(|payload| messages(&payload).any(|message| message.kind() == Kind::Response))
}

/// Whether an event of which only the beginning is known holds an answer. What is none says its method before anything
/// long.
pub(super) fn begins_answer(event: &[u8]) -> bool {
    let place = |word: &[u8]| memchr::memmem::find(event, word);
    let answer = place(b"\"result\"").into_iter().chain(place(b"\"error\"")).min();
    answer.is_some_and(|answer| place(b"\"method\"").is_none_or(|method| answer < method))
}

fn in_events(text: &[u8]) -> Vec<(Option<Id>, Fault)> {
    payloads(text).iter().flat_map(messages).filter_map(in_message).collect()
}

/// What the events of a stream say that have come as a whole.
fn payloads(text: &[u8]) -> Vec<Payload> {
    let mut splitter = Splitter::new(text.len());
    splitter.push(text);
    let events = std::iter::from_fn(|| splitter.next_piece());
    let said = events.filter_map(|piece| {
        let (Piece::Event(event) | Piece::Part(event)) = piece;
        payload(&event)
    });
    said.collect()
}

/// What an event says.
fn payload(event: &[u8]) -> Option<Payload> {
    Payload::read(Event::read(event).data?.into_owned().into()).ok()
}

fn in_message(message: &Message) -> Option<(Option<Id>, Fault)> {
    let error: Value = serde_json::from_str(message.error()?).ok()?;
    let words = error["message"].as_str().unwrap_or_default();
    let fault = Fault { code: error["code"].as_i64().unwrap_or_default(), message: cut(words, WORDS).to_owned() };
    Some((message.owned_id(), fault))
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
            let found = faults(text.as_bytes());
            let found: Vec<_> = found
                .iter()
                .map(|(id, found)| (id.as_ref().map(Id::as_json), found.code, found.message.as_str()))
                .collect();
            assert_eq!(found, Vec::from_iter(is_error.then_some((Some("1"), -3, "no"))));
        }
    }

    #[test]
    fn an_answer_is_told_by_how_it_begins() {
        for (event, expected) in [
            (r#"data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"#, true),
            (r#"data: {"result":{"method":"x","text":"#, true),
            (r#"data: {"jsonrpc":"2.0","id":1,"error":{"data":"#, true),
            (r#"data: {"jsonrpc":"2.0","method":"x","params":{"result":"#, false),
            (r#"data: {"jsonrpc":"2.0","id":1,"#, false),
        ] {
            assert_eq!(begins_answer(event.as_bytes()), expected, "{event}");
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
