//! What a newer peer says, in the words of the era of handshakes and sessions.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{SERVER_INFO, error_code, get, remove_all, with_code};
use crate::fault::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, UNSUPPORTED_REVISION,
};
use crate::json::{self, EditError};
use crate::message::{Message, Param};
use crate::meta::MetaKey;
use crate::method;
use crate::revision::Revision;

/// A request that stands alone, as one of a session.
pub fn older_request(request: &Message) -> Result<String, EditError> {
    let keys = [
        MetaKey::ProtocolVersion,
        MetaKey::ClientCapabilities,
        MetaKey::ClientInfo,
        MetaKey::LogLevel,
        MetaKey::SubscriptionId,
    ];
    let text = remove_all(request.as_str().to_owned(), &["params", "_meta"], &keys.map(MetaKey::name))?;
    let without = |text: String, name| Ok::<_, EditError>(json::remove(&text, &["params", name])?.unwrap_or(text));
    without(without(text, "inputResponses")?, "requestState")
}

/// A notification to a listener, as one to a session.
pub fn older_notification(message: &Message) -> String {
    let text = message.as_str();
    let keys = [MetaKey::SubscriptionId.name()];
    remove_all(text.to_owned(), &["params", "_meta"], &keys).unwrap_or_else(|_| text.to_owned())
}

/// A complete result of a newer server, for a client of this revision.
pub fn older_result(method: &str, result: &str, revision: Revision) -> Result<String, EditError> {
    let mut text = remove_all(result.to_owned(), &[], &["resultType", "ttlMs", "cacheScope"])?;
    text = remove_all(text, &["_meta"], &[SERVER_INFO, MetaKey::SubscriptionId.name()])?;
    match method {
        method::TOOLS_LIST => Ok(super::without_mirrors(&text)),
        method::TOOLS_CALL => adapt(text, revision),
        _ => Ok(text),
    }
}

/// Replaces in the result of a tool what the revision has no word for.
fn adapt(mut text: String, revision: Revision) -> Result<String, EditError> {
    let structure = get(&text, &["structuredContent"]).filter(|structure| !structure.starts_with('{'));
    if let Some(structure) = structure.map(str::to_owned) {
        text = json::remove(&text, &["structuredContent"])?.unwrap_or(text);
        // Whoever does not read the structure has to find it in words.
        let said = json!({"type": "text", "text": structure}).to_string();
        let blocks = get(&text, &["content"]).unwrap_or("[]").to_owned();
        if !json::items(&blocks)?.iter().any(|block| says(block, &structure)) {
            text = json::set(&text, &["content"], &with_item(&blocks, &said)?)?;
        }
    }
    if revision >= Revision::June2025 {
        return Ok(text);
    }
    let Some(blocks) = get(&text, &["content"]) else { return Ok(text) };
    let adapted: Vec<Cow<'_, str>> =
        json::items(blocks)?.into_iter().map(|block| older_block(block, revision)).collect();
    if adapted.iter().all(|block| matches!(block, Cow::Borrowed(_))) {
        return Ok(text);
    }
    json::set(&text, &["content"], &format!("[{}]", adapted.join(",")))
}

/// Whether a block of text says this, as JSON may be written in more than one way.
fn says(block: &str, structure: &str) -> bool {
    let said = get(block, &["text"]).and_then(json::decode);
    let meant = serde_json::from_str::<Value>(structure).ok();
    said.is_some_and(|said| serde_json::from_str::<Value>(&said).ok() == meant)
}

fn with_item(array: &str, item: &str) -> Result<String, EditError> {
    let items: Vec<&str> = json::items(array)?.into_iter().chain([item]).collect();
    Ok(format!("[{}]", items.join(",")))
}

/// A block of content in words that the revision has.
fn older_block(block: &str, revision: Revision) -> Cow<'_, str> {
    let kind = get(block, &["type"]).and_then(json::decode);
    let member = |name: &str| get(block, &[name]).unwrap_or("\"\"");
    match kind.as_deref() {
        Some("audio") if revision < Revision::March2025 => Cow::Owned(format!(
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

/// The answer to a handshake, from what a newer server says about itself. `asked` is what the client asked for.
pub fn initialized(discovered: &str, asked: &str) -> String {
    let known = Revision::parse(asked).filter(|revision| !revision.is_stateless());
    // A client that asked by the unpublished name of a revision must find that name in the answer.
    let version = known.map_or(Revision::NEWEST_WITH_HANDSHAKE.text(), |_| asked);
    let capabilities = get(discovered, &["capabilities"]).unwrap_or("{}").to_owned();
    let capabilities = remove_all(capabilities, &[], &["extensions", "tasks"]).unwrap_or_else(|_| "{}".to_owned());
    let unnamed = r#"{"name":"unnamed","version":"0"}"#;
    let server = get(discovered, &["_meta", SERVER_INFO]).unwrap_or(unnamed);
    let instructions = get(discovered, &["instructions"]).map(|text| format!(r#","instructions":{text}"#));
    format!(
        r#"{{"protocolVersion":{},"capabilities":{capabilities},"serverInfo":{server}{}}}"#,
        json::quote(version),
        instructions.unwrap_or_default()
    )
}

/// An error of a newer server.
pub fn older_error(request: &Message, error: &str) -> String {
    let is_about = |uri: Option<&str>| {
        let told = get(error, &["data", "uri"]).and_then(json::decode);
        told.is_some() && told == uri.and_then(json::decode)
    };
    match error_code(error) {
        INVALID_PARAMS if request.method() == method::RESOURCES_READ && is_about(request.param(Param::Uri)) => {
            with_code(error, RESOURCE_NOT_FOUND)
        }
        // The first two are about what we said, not the client. For the third one it has no word either.
        HEADER_MISMATCH | UNSUPPORTED_REVISION | MISSING_CAPABILITY => with_code(error, INTERNAL_ERROR),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(text: &str) -> Message {
        Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_request_loses_what_a_session_knows_already() {
        let key = "io.modelcontextprotocol/";
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","requestState":"s","inputResponses":{{}}, "_meta":{{"{key}protocolVersion":"2026-07-28","progressToken": 7.0,"{key}clientCapabilities":{{}}}}}}}}"#
        );
        assert_eq!(
            older_request(&message(&text)).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a", "_meta":{"progressToken": 7.0}}}"#
        );
        let alone =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"{key}clientInfo":{{}} }}}}}}"#);
        assert_eq!(older_request(&message(&alone)).unwrap(), r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}}"#);
    }

    #[test]
    fn results_are_in_the_words_of_the_revision() {
        let result = format!(
            r#"{{"resultType":"complete","ttlMs":1,"cacheScope":"public","_meta":{{"{SERVER_INFO}":{{}},"x":1}},"a":[1.0]}}"#
        );
        assert_eq!(older_result("x", &result, Revision::June2025).unwrap(), r#"{"_meta":{"x":1},"a":[1.0]}"#);
        let blocks = r#"{"content":[{"type":"text","text":"t" },{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","name":"n","uri":"u:1"}]}"#;
        let older = |revision| older_result("tools/call", blocks, revision).unwrap();
        assert_eq!(older(Revision::June2025), blocks);
        let march = older(Revision::March2025);
        assert!(march.contains(r#""type":"audio""#) && march.contains(r#"{"type":"text","text":"n: u:1"}"#), "{march}");
        assert!(march.contains(r#"{"type":"text","text":"t" }"#));
        assert!(older(Revision::November2024).contains(r#""mimeType":"audio/wav","blob":"AA==""#));
    }

    #[test]
    fn a_structure_that_is_no_object_is_told_in_words() {
        let older = |text: &str| older_result("tools/call", text, Revision::November2025).unwrap();
        assert_eq!(older(r#"{"content":[],"structuredContent":[1]}"#), r#"{"content":[{"type":"text","text":"[1]"}]}"#);
        let said = r#"{"content":[{"type":"text","text":"[ 1 ]"}]}"#;
        assert_eq!(older(r#"{"content":[{"type":"text","text":"[ 1 ]"}],"structuredContent":[1]}"#), said);
        assert_eq!(older(r#"{"structuredContent":{"a":1}}"#), r#"{"structuredContent":{"a":1}}"#);
    }

    #[test]
    fn a_handshake_is_answered_in_a_revision_that_has_one() {
        let discovered =
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{},"tools":{}},"instructions":"i"}"#;
        assert_eq!(
            initialized(discovered, "2025-03-26"),
            r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"unnamed","version":"0"},"instructions":"i"}"#
        );
        assert!(initialized(discovered, "2026-07-28").contains("2025-11-25"));
        assert!(initialized(discovered, "2024-10-07").contains("2024-10-07"));
    }

    #[test]
    fn errors_have_the_codes_of_the_older_revisions() {
        let read = message(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#);
        let code = |error: &str| error_code(&older_error(&read, error));
        assert_eq!(code(r#"{"code":-32602,"message":"","data":{"uri":"a:\u0062"}}"#), RESOURCE_NOT_FOUND);
        assert_eq!(code(r#"{"code":-32602,"message":""}"#), INVALID_PARAMS);
        assert_eq!(code(r#"{"code":-32022,"message":""}"#), INTERNAL_ERROR);
        let missing = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#;
        assert_eq!(older_error(&read, missing), missing.replace("-32021", "-32603"));
    }
}
