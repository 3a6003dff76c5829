//! What a callback is told, and what it says.

use serde_json::{Value, json};
use skep_mcp::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::middleware::ambiguity::read_once;
use crate::middleware::identity::Identity;

const VERSION: &str = "v0.1.0";
/// Those who act for each other that are told.
const MOST_HOPS: usize = 10;
/// The one form of changes that is understood.
const JSON_PATCH: &str = "json_patch";

/// What is the same for all callbacks that see a request.
#[derive(Debug, Clone)]
pub(super) struct About<'a> {
    /// Who asks, without any credential; null when nobody is known.
    pub(super) principal: &'a Value,
    pub(super) server: &'a str,
    pub(super) transport: &'a str,
    /// The address that the request came from, with its port.
    pub(super) source: &'a str,
}

impl About<'_> {
    /// The question about a message, which is told as it came.
    pub(super) fn document(&self, uid: Uuid, now: OffsetDateTime, message: &str) -> String {
        let context =
            json!({"server_name": self.server, "source_ip": self.source, "transport": self.transport}).to_string();
        let timestamp = now.format(&Rfc3339).unwrap_or_default();
        [
            r#"{"version":""#,
            VERSION,
            r#"","uid":""#,
            &uid.to_string(),
            r#"","timestamp":"#,
            &json::quote(&timestamp),
            r#","principal":"#,
            &self.principal.to_string(),
            r#","mcp_request":"#,
            message,
            r#","context":"#,
            &context,
            "}",
        ]
        .concat()
    }
}

/// What callbacks are told about somebody who calls: nothing that could be used to call in their name.
pub(super) fn principal(identity: &Identity) -> Value {
    let mut told = json!({});
    for (name, value) in [
        ("sub", &identity.subject),
        ("platform_user_id", &identity.platform_user_id),
        ("name", &identity.name),
        ("email", &identity.email),
    ] {
        if !value.is_empty() {
            told[name] = json!(value);
        }
    }
    if !identity.claims.is_empty() {
        told["claims"] = json!(identity.claims);
    }
    if let Some(delegation) = &identity.delegation {
        told["delegation"] = delegation.json(MOST_HOPS);
    }
    told
}

/// What a callback says.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) is_allowed: bool,
    /// How it wants the message to be; nothing when it is to stay as it is.
    pub(super) change: Option<Change>,
    /// Why, for the log and for nobody else.
    pub(super) reason: String,
}

/// A change that was not looked at yet.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) is_json_patch: bool,
    /// As the callback wrote it.
    pub(super) patch: String,
}

impl Verdict {
    /// Reads an answer. An object that does not say that the message is allowed is a no; what is none, or says it in
    /// another way than by yes and no, is no verdict.
    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let written = str::from_utf8(answer).ok()?;
        let answer = read_once(answer).filter(Value::is_object)?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
        let patch = answer.get("patch").filter(|patch| !is_nothing(patch) && !text("patch_type").is_empty());
        let patch = patch.and_then(|_| json::find(written, &["patch"]).ok().flatten());
        let change = patch.map(|patch| Change {
            is_json_patch: text("patch_type") == JSON_PATCH,
            patch: patch.of(written).to_owned(),
        });
        let reason = [text("reason"), text("message")].into_iter().find(|reason| !reason.is_empty());
        Some(Self {
            is_allowed: answer.get("allowed").filter(|said| !said.is_null()).map_or(Some(false), Value::as_bool)?,
            change,
            reason: reason.unwrap_or_default().chars().take(LONGEST_REASON).collect(),
        })
    }
}

/// Letters of a reason that are logged.
const LONGEST_REASON: usize = 256;

fn is_nothing(patch: &Value) -> bool {
    match patch {
        Value::Null => true,
        Value::Array(operations) => operations.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_byte_for_byte_and_the_rest_around_it() {
        let about =
            About { principal: &json!({"sub": "u"}), server: "s", transport: "streamable-http", source: "127.0.0.1:5" };
        let message = r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"}"#;
        let text = about.document(Uuid::nil(), OffsetDateTime::UNIX_EPOCH, message);
        assert_eq!(
            text,
            r#"{"version":"v0.1.0","uid":"00000000-0000-0000-0000-000000000000","timestamp":"1970-01-01T00:00:00Z","#
                .to_owned()
                + r#""principal":{"sub":"u"},"mcp_request":{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"},"#
                + r#""context":{"server_name":"s","source_ip":"127.0.0.1:5","transport":"streamable-http"}}"#
        );
    }

    #[test]
    fn only_a_yes_is_a_yes_and_what_is_no_object_is_no_verdict() {
        const TWICE: &str = r#"{"allowed":true,"patch":[{"op":"add","op":"remove"}]}"#;
        for answer in ["", "[]", "null", r#"{"allowed":"true"}"#, r#"{"allowed":1}"#, r#"{"allowed":true"#, TWICE] {
            assert_eq!(Verdict::read(answer.as_bytes()), None, "{answer}");
        }
        for answer in ["{}", r#"{"allowed":null}"#, r#"{"allowed":false}"#, r#"{"Allowed":true}"#] {
            assert_eq!(Verdict::read(answer.as_bytes()).map(|verdict| verdict.is_allowed), Some(false), "{answer}");
        }
    }

    #[test]
    fn a_change_needs_a_type_and_something_to_change() {
        let change = |answer: &str| Verdict::read(answer.as_bytes()).unwrap().change;
        for answer in [
            r#"{"allowed":true,"patch":[{"op":"remove","path":"/mcp_request/id"}]}"#,
            r#"{"allowed":true,"patch_type":"json_patch"}"#,
            r#"{"allowed":true,"patch_type":"json_patch","patch":null}"#,
            r#"{"allowed":true,"patch_type":"json_patch","patch":[]}"#,
            r#"{"allowed":true,"patch_type":"","patch":[1]}"#,
        ] {
            assert_eq!(change(answer), None, "{answer}");
        }
        assert!(change(r#"{"allowed":true,"patch_type":"json_patch","patch":[1]}"#).unwrap().is_json_patch);
        assert!(!change(r#"{"allowed":true,"patch_type":"merge","patch":{}}"#).unwrap().is_json_patch);
    }
}
