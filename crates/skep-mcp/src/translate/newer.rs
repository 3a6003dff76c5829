//! What an older peer says, in the words of the era where requests stand alone.

use serde_json::json;

use super::{SERVER_INFO, error_code, get, is_cacheable, with_code};
use crate::fault::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, UNSUPPORTED_REVISION,
};
use crate::json::{self, EditError};
use crate::message::{Message, Param};
use crate::meta::MetaKey;
use crate::method;
use crate::revision::Revision;

/// The errors that the protocol keeps for itself. An older server that uses one means something of its own.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// What a request that stands alone says about its client, and what it repeats from an earlier round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Envelope<'a> {
    /// What the client can do: an object.
    pub capabilities: &'a str,
    /// Who the client is: an object.
    pub client: &'a str,
    /// From which level on it wants log messages.
    pub log_level: Option<&'a str>,
    /// The answers to the questions of the round before: an object.
    pub answers: Option<&'a str>,
    /// What the server wants back from the round before: a string, as JSON.
    pub state: Option<&'a str>,
}

/// A request of a session, as one that stands alone.
pub fn newer_request(request: &Message, envelope: &Envelope<'_>) -> Result<String, EditError> {
    let mut text = request.as_str().to_owned();
    if request.params_span().is_some_and(|params| params.of(&text) == "null") {
        text = json::set(&text, &["params"], "{}")?;
    }
    // It asks for a task, which the other era has no word for.
    if let Some(without) = json::remove(&text, &["params", "task"])? {
        text = without;
    }
    let mut say = |key: MetaKey, value: &str| {
        text = json::set(&text, &["params", "_meta", key.name()], value)?;
        Ok::<_, EditError>(())
    };
    say(MetaKey::ProtocolVersion, &json::quote(Revision::July2026.text()))?;
    say(MetaKey::ClientCapabilities, envelope.capabilities)?;
    say(MetaKey::ClientInfo, envelope.client)?;
    if let Some(level) = envelope.log_level {
        say(MetaKey::LogLevel, &json::quote(level))?;
    }
    if let Some(answers) = envelope.answers {
        text = json::set(&text, &["params", "inputResponses"], answers)?;
    }
    if let Some(state) = envelope.state {
        text = json::set(&text, &["params", "requestState"], state)?;
    }
    Ok(text)
}

/// A result of an older server. `server` is who that is, as its handshake told.
pub fn newer_result(method: &str, result: &str, server: Option<&str>) -> Result<String, EditError> {
    let mut text = if method == method::TOOLS_LIST { super::hide_tasks(result) } else { result.to_owned() };
    text = json::set(&text, &["resultType"], "\"complete\"")?;
    if is_cacheable(method) {
        text = json::set(&text, &["ttlMs"], "0")?;
        text = json::set(&text, &["cacheScope"], "\"private\"")?;
    }
    match server {
        Some(server) => json::set(&text, &["_meta", SERVER_INFO], server),
        None => Ok(text),
    }
}

/// What a server says about itself, from the result of its handshake. Tasks are not what they are in the other era.
pub fn discovered(handshake: &str) -> String {
    let capabilities = get(handshake, &["capabilities"]).unwrap_or("{}").to_owned();
    let capabilities = super::remove_all(capabilities, &[], &["tasks"]).unwrap_or_else(|_| "{}".to_owned());
    let versions = json!(Revision::ALL.map(Revision::text));
    let mut text = format!(r#"{{"supportedVersions":{versions},"capabilities":{capabilities}}}"#);
    if let Some(instructions) = get(handshake, &["instructions"]) {
        text = json::set(&text, &["instructions"], instructions).unwrap_or(text);
    }
    newer_result(method::DISCOVER, &text, get(handshake, &["serverInfo"])).unwrap_or(text)
}

/// An error of an older server.
pub fn newer_error(request: &Message, error: &str) -> String {
    match error_code(error) {
        RESOURCE_NOT_FOUND if request.method() == method::RESOURCES_READ => {
            let text = with_code(error, INVALID_PARAMS);
            let uri = request.param(Param::Uri).unwrap_or("\"\"");
            let named = json::set(&text, &["data", "uri"], uri);
            // Data that is no object has no place for it.
            named.or_else(|_| json::set(&text, &["data"], &format!(r#"{{"uri":{uri}}}"#))).unwrap_or(text)
        }
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_REVISION => with_code(error, INTERNAL_ERROR),
        code if RESERVED.contains(&code) => with_code(error, INTERNAL_ERROR),
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
    fn a_request_says_about_its_client_what_the_handshake_said() {
        let request = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":1}, "_meta":{"x":1.0}}}"#,
        );
        let envelope =
            Envelope { capabilities: "{}", client: r#"{"name":"s"}"#, log_level: Some("info"), ..Default::default() };
        assert_eq!(
            newer_request(&request, &envelope).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a", "_meta":{"x":1.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"s"},"io.modelcontextprotocol/logLevel":"info"}}}"#
        );
        for bare in
            [r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#]
        {
            let text =
                newer_request(&message(bare), &Envelope { capabilities: "{}", client: "{}", ..Default::default() });
            assert!(message(&text.unwrap()).meta(MetaKey::ClientCapabilities).is_some());
        }
        let odd = message(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":7}}"#);
        assert!(newer_request(&odd, &envelope).is_err());
    }

    #[test]
    fn results_say_what_the_newer_revision_requires() {
        assert_eq!(
            newer_result("resources/read", r#"{"contents":[ ]}"#, Some(r#"{"name":"s"}"#)).unwrap(),
            r#"{"contents":[ ],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
        );
        assert_eq!(newer_result("tools/call", "{}", None).unwrap(), r#"{"resultType":"complete"}"#);
        let handshake = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"x":1e1},"tasks":{}},"serverInfo":{"name":"s"},"instructions":"i"}"#;
        let found: serde_json::Value = serde_json::from_str(&discovered(handshake)).unwrap();
        assert_eq!(found["capabilities"], json!({"tools": {"x": 1e1}}));
        assert_eq!((&found["instructions"], &found["resultType"]), (&json!("i"), &json!("complete")));
        assert_eq!(found["supportedVersions"][0], "2026-07-28");
        assert_eq!(found["_meta"][SERVER_INFO]["name"], "s");
    }

    #[test]
    fn errors_have_the_codes_of_the_newer_revision() {
        let read = message(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:\u0062"}}"#);
        assert_eq!(
            newer_error(&read, r#"{"code":-32002,"message":"no"}"#),
            r#"{"code":-32602,"message":"no","data":{"uri":"a:\u0062"}}"#
        );
        assert!(newer_error(&read, r#"{"code":-32002,"message":"no","data":7}"#).contains(r#""data":{"uri":"#));
        assert_eq!(error_code(&newer_error(&read, r#"{"code":-32050,"message":""}"#)), INTERNAL_ERROR);
        assert_eq!(newer_error(&read, r#"{"code":-32000 ,"message":""}"#), r#"{"code":-32000 ,"message":""}"#);
    }
}
