//! Peers of the era of handshakes that speak different revisions: what one of them has no word for.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Value, json};

use super::get;
use crate::json::{self, EditError};
use crate::message::Message;
use crate::method;
use crate::revision::Revision;

/// The revision that the result of a handshake names.
pub fn agreed(handshake: &str) -> Option<Revision> {
    Revision::parse(&json::decode(get(handshake, &["protocolVersion"])?)?)
}

/// A request for a server of this revision, when it says something that the revision has no word for.
pub fn request_for(request: &Message, server: Revision) -> Option<Bytes> {
    if request.method() != method::COMPLETE || server >= Revision::June2025 {
        return None;
    }
    let without = json::remove(request.as_str(), &["params", "context"]).ok()?;
    without.map(Bytes::from)
}

/// An answer for a client of this revision, when it says something that the revision has no word for.
pub fn answer_for(answer: &str, client: Revision) -> Option<String> {
    match result_for(get(answer, &["result"])?, client) {
        Ok(Cow::Owned(result)) => json::set(answer, &["result"], &result).ok(),
        // A result that nobody can read is the client's to complain about.
        Ok(Cow::Borrowed(_)) | Err(_) => None,
    }
}

/// The result of a tool or a prompt in words that the client's revision has.
pub fn result_for(result: &str, client: Revision) -> Result<Cow<'_, str>, EditError> {
    let mut text = with_structure_told(result)?;
    if client >= Revision::June2025 {
        return Ok(text);
    }
    if let Some(blocks) = changed(get(&text, &["content"]), |block| older_block(block, client))? {
        text = Cow::Owned(json::set(&text, &["content"], &blocks)?);
    }
    if let Some(messages) = changed(get(&text, &["messages"]), |message| older_message(message, client))? {
        text = Cow::Owned(json::set(&text, &["messages"], &messages)?);
    }
    Ok(text)
}

/// An array with each of its items as `change` gives it, if that changes any.
fn changed<'a>(array: Option<&'a str>, change: impl Fn(&'a str) -> Cow<'a, str>) -> Result<Option<String>, EditError> {
    let Some(array) = array.filter(|array| array.starts_with('[')) else { return Ok(None) };
    let items: Vec<Cow<'_, str>> = json::items(array)?.into_iter().map(change).collect();
    let is_same = items.iter().all(|item| matches!(item, Cow::Borrowed(_)));
    Ok((!is_same).then(|| format!("[{}]", items.join(","))))
}

/// A result whose structure, if it is no object, is told in words. Whoever does not read the structure finds it there.
fn with_structure_told(result: &str) -> Result<Cow<'_, str>, EditError> {
    let structure = get(result, &["structuredContent"]).filter(|structure| !structure.starts_with('{'));
    let Some(structure) = structure else { return Ok(Cow::Borrowed(result)) };
    let text = json::remove(result, &["structuredContent"])?.unwrap_or_else(|| result.to_owned());
    let blocks = json::items(get(&text, &["content"]).unwrap_or("[]"))?;
    if blocks.iter().any(|block| says(block, structure)) {
        return Ok(Cow::Owned(text));
    }
    let said = json!({"type": "text", "text": structure}).to_string();
    let blocks: Vec<&str> = blocks.into_iter().chain([said.as_str()]).collect();
    json::set(&text, &["content"], &format!("[{}]", blocks.join(","))).map(Cow::Owned)
}

/// Whether a block of text says this, as JSON may be written in more than one way.
fn says(block: &str, structure: &str) -> bool {
    let said = get(block, &["text"]).and_then(json::decode);
    let meant = serde_json::from_str::<Value>(structure).ok();
    said.is_some_and(|said| serde_json::from_str::<Value>(&said).ok() == meant)
}

/// A message of a prompt in words that the revision has.
fn older_message(message: &str, client: Revision) -> Cow<'_, str> {
    let block = get(message, &["content"]).filter(|block| block.starts_with('{'));
    match block.map(|block| older_block(block, client)) {
        Some(Cow::Owned(block)) => json::set(message, &["content"], &block).map_or(Cow::Borrowed(message), Cow::Owned),
        Some(Cow::Borrowed(_)) | None => Cow::Borrowed(message),
    }
}

/// A block of content in words that the revision has.
fn older_block(block: &str, client: Revision) -> Cow<'_, str> {
    let kind = get(block, &["type"]).and_then(json::decode);
    let member = |name: &str| get(block, &[name]).unwrap_or("\"\"");
    match kind.as_deref() {
        Some("audio") if client < Revision::March2025 => Cow::Owned(format!(
            r#"{{"type":"resource","resource":{{"uri":"skep:audio","mimeType":{},"blob":{}}}}}"#,
            member("mimeType"),
            member("data")
        )),
        Some("resource_link") => {
            let words = ["name", "uri"].map(|name| json::decode(member(name)).unwrap_or_default());
            Cow::Owned(json!({"type": "text", "text": words.join(": ")}).to_string())
        }
        _ => Cow::Borrowed(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: &str = r#"[{"type":"text","text":"t" },{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","name":"n","uri":"u:1"}]"#;

    #[test]
    fn content_is_in_the_words_of_the_revision() {
        let result = format!(r#"{{"content":{BLOCKS}}}"#);
        let older = |revision| result_for(&result, revision).unwrap().into_owned();
        assert_eq!(older(Revision::June2025), result);
        let march = older(Revision::March2025);
        assert!(march.contains(r#""type":"audio""#) && march.contains(r#"{"type":"text","text":"n: u:1"}"#), "{march}");
        assert!(march.contains(r#"{"type":"text","text":"t" }"#));
        assert!(older(Revision::November2024).contains(r#""mimeType":"audio/wav","blob":"AA==""#));
        for odd in [r#"{"content":7}"#, r#"{"content":[7,{}]}"#, r#"{"messages":[{"content":[]},7]}"#, "[]", "7"] {
            assert!(!matches!(result_for(odd, Revision::November2024), Ok(Cow::Owned(_))), "{odd}");
        }
    }

    #[test]
    fn messages_of_prompts_are_content_too() {
        let blocks = json::items(BLOCKS).unwrap();
        let prompt = |block: &str| format!(r#"{{"messages":[{{"role":"user","content":{block} }}],"x":1.0}}"#);
        let older = |block: &str| result_for(&prompt(block), Revision::November2024).unwrap().into_owned();
        assert_eq!(older(blocks[0]), prompt(blocks[0]));
        assert_eq!(older(blocks[2]), prompt(r#"{"type":"text","text":"n: u:1"}"#));
        assert!(older(blocks[1]).contains(r#""blob":"AA==""#));
    }

    #[test]
    fn a_structure_that_is_no_object_is_told_in_words() {
        let older = |text: &str| result_for(text, Revision::November2025).unwrap().into_owned();
        assert_eq!(older(r#"{"content":[],"structuredContent":[1]}"#), r#"{"content":[{"type":"text","text":"[1]"}]}"#);
        let said = r#"{"content":[{"type":"text","text":"[ 1 ]"}]}"#;
        assert_eq!(older(r#"{"content":[{"type":"text","text":"[ 1 ]"}],"structuredContent":[1]}"#), said);
        assert_eq!(older(r#"{"structuredContent":{"a":1}}"#), r#"{"structuredContent":{"a":1}}"#);
    }

    #[test]
    fn answers_that_need_no_change_are_left_alone() {
        let answer = |result: &str| format!(r#"{{"jsonrpc":"2.0", "result":{result},"id":1e0}}"#);
        for same in [r#"{"content":[{"type":"text","text":""}]}"#, "{}", "[]", r#"{"content":"x"}"#] {
            assert_eq!(answer_for(&answer(same), Revision::November2024), None, "{same}");
        }
        assert_eq!(answer_for(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, Revision::November2024), None);
        let linked = answer(r#"{"content":[{"type":"resource_link","name":"n","uri":"u"}]}"#);
        let told = answer(r#"{"content":[{"type":"text","text":"n: u"}]}"#);
        assert_eq!(answer_for(&linked, Revision::March2025), Some(told));
    }

    #[test]
    fn servers_before_june_2025_are_not_told_what_is_settled_already() {
        let read = |text: &str| Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap();
        let complete = read(
            r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{ },"context":{"arguments":{}}}}"#,
        );
        assert_eq!(
            request_for(&complete, Revision::March2025).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{ }}}"#
        );
        assert_eq!(request_for(&complete, Revision::June2025), None);
        let other = read(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"context":{}}}"#);
        assert_eq!(request_for(&other, Revision::November2024), None);
        assert_eq!(agreed(r#"{"protocolVersion":"2024-10-07"}"#), Some(Revision::November2024));
        assert_eq!(agreed(r#"{"protocolVersion":7}"#), None);
    }
}
