//! What a newer peer says, in the words of the era of handshakes and sessions.

use std::borrow::Cow;

use super::within::result_for;
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
    let keys = MetaKey::BETWEEN_NEIGHBOURS.map(MetaKey::name);
    let text = remove_all(request.as_str().to_owned(), &["params", "_meta"], &keys)?;
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
        method::TOOLS_CALL | method::PROMPTS_GET => result_for(&text, revision).map(Cow::into_owned),
        _ => Ok(text),
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
