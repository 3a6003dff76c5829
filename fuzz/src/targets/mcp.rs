//! What MCP clients and servers send.

use bytes::Bytes;
use serde_json::Value;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::era::{self, Surroundings};
use skep_mcp::json;
use skep_mcp::lines::{Line, LineSplitter};
use skep_mcp::sse::{Event, Frame, Piece, Splitter};
use skep_mcp::{Message, MetaKey, Param, Payload};

use crate::parts::split;

/// How large an event or a line may be.
const LARGEST: usize = 256;

/// A message has the parts that another reader finds in it, and an edit leaves all others alone.
pub(super) fn message(input: &[u8]) {
    match Payload::read(Bytes::copy_from_slice(input)) {
        Ok(Payload::Single(message)) => check(&message),
        Ok(Payload::Batch(messages)) => messages.iter().flatten().for_each(check),
        Err(error) => {
            // Ids come back as they are, even those that this reader cannot represent.
            let is_readable = error.id().is_none_or(|id| serde_json::from_str::<Value>(id.as_json()).is_ok());
            let answer = read(&error.answer());
            assert!(!is_readable || answer["error"]["code"].is_i64(), "the answer to it is none");
        }
    }
}

fn check(message: &Message) {
    for version in [None, Some("2025-11-25"), Some("2026-07-28")] {
        let _ = era::classify(message, Surroundings { version, session: None });
    }
    // Another reader may refuse what it cannot represent, such as half of a character.
    let Ok(value) = serde_json::from_slice::<Value>(message.text()) else { return };
    assert_eq!(value["method"].as_str().unwrap_or_default(), message.method());
    let read = |json: Option<&str>| json.and_then(|json| serde_json::from_str::<Value>(json).ok()).unwrap_or_default();
    assert_eq!(value["id"], read(message.id()));
    assert_eq!(value["params"][Param::Name.name()], read(message.param(Param::Name)));
    for key in MetaKey::ALL {
        assert_eq!(value["params"]["_meta"][key.name()], read(message.meta(key)));
    }
    let Some(id) = message.id_span() else { return };
    let mut changed: Value = serde_json::from_slice(&message.with([(id, &b"1"[..])])).unwrap_or_default();
    changed["id"] = value["id"].clone();
    assert_eq!(changed, value, "more than the id has changed");
}

/// A document, a path of names in lines, and a value.
pub(super) fn edit(input: &[u8]) {
    let Some(parts) = split(input) else { return };
    let [document, path, value, ..] = parts.as_slice() else { return };
    let Ok(new) = serde_json::from_str::<Value>(value) else { return };
    let path: Vec<&str> = path.lines().collect();
    let Ok(text) = json::set(document, &path, value) else { return };
    let after: Value = match serde_json::from_str(&text) {
        Ok(after) => after,
        Err(error) => return assert!(is_beyond_the_other(&error), "{error}: {text}"),
    };
    let at = |document: &Value| path.iter().fold(document.clone(), |value, name| value[*name].clone());
    assert_eq!(at(&after), new, "{text}");
    if let Ok(Some(text)) = json::remove(document, &path) {
        let left = serde_json::from_str::<Value>(&text);
        assert!(left.as_ref().map_or_else(is_beyond_the_other, |_| true), "what is left is no JSON: {text}");
    }
}

/// Whether JSON is refused for what the other reader cannot hold: two documents that are each as deep as it can go, and
/// numbers, which we carry as they are written.
pub(super) fn is_beyond_the_other(error: &serde_json::Error) -> bool {
    let message = error.to_string();
    message.contains("recursion limit") || message.contains("number out of range")
}

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// A list gives the same list when all of it is kept, and JSON when some of it is not.
pub(super) fn catalog(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for kind in [CatalogKind::Tools, CatalogKind::Prompts, CatalogKind::Resources, CatalogKind::Templates] {
        let Ok(catalog) = Catalog::read(kind, text) else { continue };
        let Ok(before) = serde_json::from_str::<Value>(text) else { continue };
        let all = catalog.with_items(catalog.items().iter().map(|item| item.json));
        assert_eq!(read(&all), before);
        let keys: Vec<Value> = catalog.items().iter().map(|item| Value::from(&*item.key)).collect();
        let expected: Vec<Value> =
            before[kind.member()].as_array().into_iter().flatten().map(|item| item[kind.key()].clone()).collect();
        assert_eq!(keys, expected);
        let none = read(&catalog.with_items([]));
        assert_eq!(none[kind.member()], Value::Array(Vec::new()));
    }
}

/// Events and lines are the same however they arrive, and no byte is lost.
pub(super) fn stream(input: &[u8]) {
    let all = pieces(input, input.len().max(1));
    assert_eq!(all.concat(), input);
    let events = |size| pieces(input, size).into_iter().filter(|piece| piece.len() <= LARGEST).collect::<Vec<_>>();
    if all.iter().all(|piece| piece.len() <= LARGEST) {
        assert_eq!(events(1), all);
        assert_eq!(events(7), all);
    }
    for piece in &all {
        let event = Event::read(piece);
        if let Some(data) = &event.data {
            let again = Frame { data, ..Frame::default() }.encode();
            assert_eq!(Event::read(&again).data, event.data);
        }
    }
    assert_eq!(lines(input, 1), lines(input, input.len().max(1)));
}

fn pieces(input: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(LARGEST);
    let mut pieces = Vec::new();
    for chunk in input.chunks(size) {
        splitter.push(chunk);
        while let Some(Piece::Event(piece) | Piece::Part(piece)) = splitter.next_piece() {
            pieces.push(piece.to_vec());
        }
    }
    pieces.extend(splitter.finish().map(|rest| rest.to_vec()));
    pieces
}

fn lines(input: &[u8], size: usize) -> Vec<Line> {
    let mut splitter = LineSplitter::new(LARGEST);
    let mut lines = Vec::new();
    for chunk in input.chunks(size) {
        splitter.buffer().extend_from_slice(chunk);
        lines.extend(std::iter::from_fn(|| splitter.next_line()));
    }
    lines.extend(splitter.finish());
    lines
}
