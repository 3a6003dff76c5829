//! To which era one message belongs: the one of handshakes and sessions, or the one where requests stand alone.
//!
//! That is a property of the single message, never of the connection it came by.

use serde_json::json;

use crate::fault::{Fault, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_REVISION};
use crate::message::{Kind, Message};
use crate::meta::MetaKey;
use crate::method;
use crate::revision::Revision;

/// Under which rules a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Handshakes and sessions.
    Legacy,
    /// Every request stands alone.
    Modern,
}

/// What an HTTP request says besides its message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The header `MCP-Protocol-Version`.
    pub version: Option<&'a str>,
    /// The revision of the session that it names, if that one is alive.
    pub session: Option<Revision>,
}

/// Decides by the first rule that matches.
pub fn classify(message: &Message, surroundings: Surroundings<'_>) -> Result<Era, Fault> {
    match message.kind() {
        Kind::Request => {}
        Kind::Notification => return by_header(surroundings.version),
        Kind::Response => {
            return match by_header(surroundings.version)? {
                Era::Modern => Err(Fault::new(INVALID_REQUEST, "nothing was asked that this could be the answer to")),
                Era::Legacy => Ok(Era::Legacy),
            };
        }
    }
    let Some(version) = message.meta_text(MetaKey::ProtocolVersion) else {
        return without_version(message, surroundings);
    };
    match surroundings.version {
        None => {
            return match surroundings.session {
                Some(revision) if revision.text() == version => Ok(Era::Legacy),
                _ => Err(Fault::new(HEADER_MISMATCH, "the header MCP-Protocol-Version is missing")),
            };
        }
        // Agreement comes before support: the versions are compared before either is looked up.
        Some(header) if header != version => {
            let told = format!("MCP-Protocol-Version is {header}, but _meta says {version}");
            return Err(Fault::new(HEADER_MISMATCH, told).with_data(json!({"header": header, "body": version})));
        }
        Some(_) => {}
    }
    match Revision::parse(&version) {
        Some(revision) if revision.is_stateless() => check_envelope(message).map(|()| Era::Modern),
        Some(_) => Ok(Era::Legacy),
        None => Err(unsupported(&version)),
    }
}

fn by_header(version: Option<&str>) -> Result<Era, Fault> {
    match version.map(|version| (version, Revision::parse(version))) {
        Some((_, Some(revision))) if revision.is_stateless() => Ok(Era::Modern),
        None | Some((_, Some(_))) => Ok(Era::Legacy),
        Some((version, None)) => Err(unsupported(version)),
    }
}

fn without_version(message: &Message, surroundings: Surroundings<'_>) -> Result<Era, Fault> {
    let missing = || Fault::new(INVALID_PARAMS, format!("_meta lacks {}", MetaKey::ProtocolVersion.name()));
    if message.method() == method::INITIALIZE {
        // The body of a handshake decides, whatever the header says.
        return Ok(Era::Legacy);
    }
    if surroundings.version.is_some() {
        return match by_header(surroundings.version)? {
            Era::Modern => Err(missing()),
            Era::Legacy => Ok(Era::Legacy),
        };
    }
    let speaks_modern = message.meta(MetaKey::ClientInfo).is_some()
        || message.meta(MetaKey::ClientCapabilities).is_some()
        || message.meta(MetaKey::ProtocolVersion).is_some()
        || matches!(message.method(), method::DISCOVER | method::LISTEN);
    if speaks_modern && surroundings.session.is_none() { Err(missing()) } else { Ok(Era::Legacy) }
}

fn check_envelope(message: &Message) -> Result<(), Fault> {
    let is_object = |key: MetaKey| message.meta(key).map(|value| value.starts_with('{'));
    if is_object(MetaKey::ClientCapabilities) != Some(true) {
        let told = format!("_meta lacks the object {}", MetaKey::ClientCapabilities.name());
        return Err(Fault::new(INVALID_PARAMS, told));
    }
    if is_object(MetaKey::ClientInfo) == Some(false) {
        return Err(Fault::new(INVALID_PARAMS, format!("{} must be an object", MetaKey::ClientInfo.name())));
    }
    if message.meta(MetaKey::LogLevel).is_some_and(|level| !level.starts_with('"')) {
        return Err(Fault::new(INVALID_PARAMS, format!("{} must be a string", MetaKey::LogLevel.name())));
    }
    Ok(())
}

/// The refusal of a revision that nobody here speaks.
pub fn unsupported(requested: &str) -> Fault {
    let supported = Revision::ALL.map(Revision::text);
    Fault::new(UNSUPPORTED_REVISION, "Unsupported protocol version")
        .with_data(json!({"supported": supported, "requested": requested}))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::Value;

    use super::*;

    const NEW: &str = "2026-07-28";
    const OLD: &str = "2025-11-25";

    fn message(method: &str, meta: &Value) -> Message {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
        Message::read(Bytes::from(body.to_string())).unwrap()
    }

    fn meta(version: Option<&str>) -> Value {
        match version {
            None => json!({}),
            Some(version) => json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }),
        }
    }

    fn verdict(message: &Message, version: Option<&str>, session: Option<Revision>) -> String {
        match classify(message, Surroundings { version, session }) {
            Ok(Era::Legacy) => "legacy".to_owned(),
            Ok(Era::Modern) => "modern".to_owned(),
            Err(fault) => fault.code.to_string(),
        }
    }

    #[test]
    fn requests_are_classified_by_the_first_rule_that_matches() {
        let session = Some(Revision::November2025);
        for (method, body, header, session, expected) in [
            ("initialize", None, Some(NEW), None, "legacy"),
            ("initialize", Some(NEW), Some(NEW), None, "modern"),
            ("tools/list", Some(NEW), None, None, "-32020"),
            ("tools/list", Some(OLD), None, session, "legacy"),
            ("tools/list", Some(NEW), None, session, "-32020"),
            ("tools/list", Some("v999"), Some(NEW), None, "-32020"),
            ("tools/list", Some(NEW), Some(OLD), session, "-32020"),
            ("tools/list", Some(OLD), Some(OLD), None, "legacy"),
            ("tools/list", None, Some(NEW), session, "-32602"),
            ("tools/list", None, Some(OLD), None, "legacy"),
            ("tools/list", None, Some("v999"), session, "-32022"),
            ("tools/list", None, None, session, "legacy"),
            ("server/discover", None, None, None, "-32602"),
            ("server/discover", None, None, session, "legacy"),
            ("tools/list", None, None, None, "legacy"),
            ("tools/list", Some("v999"), Some("v999"), None, "-32022"),
            ("tools/list", Some(NEW), Some(NEW), session, "modern"),
        ] {
            let found = verdict(&message(method, &meta(body)), header, session);
            assert_eq!(found, expected, "{method} {body:?} {header:?} {session:?}");
        }
    }

    #[test]
    fn the_envelope_of_a_modern_request_is_checked_and_stray_keys_of_a_legacy_one_are_not() {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        for (meta, header, expected) in [
            (json!({key("protocolVersion"): NEW}), Some(NEW), "-32602"),
            (json!({key("protocolVersion"): NEW, key("clientCapabilities"): []}), Some(NEW), "-32602"),
            (json!({key("clientCapabilities"): {}}), None, "-32602"),
            (json!({key("clientInfo"): {}}), Some(OLD), "legacy"),
            (json!({key("logLevel"): "info"}), None, "legacy"),
        ] {
            assert_eq!(verdict(&message("tools/list", &meta), header, None), expected, "{meta}");
        }
    }

    #[test]
    fn other_messages_go_by_the_header() {
        let read = |text: &'static str| Message::read(Bytes::from_static(text.as_bytes())).unwrap();
        let notification = read(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        assert_eq!(verdict(&notification, Some(NEW), None), "modern");
        assert_eq!(verdict(&notification, None, None), "legacy");
        assert_eq!(verdict(&notification, Some("v999"), None), "-32022");
        let response = read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(verdict(&response, Some(NEW), None), "-32600");
        assert_eq!(verdict(&response, Some(OLD), None), "legacy");
    }
}
