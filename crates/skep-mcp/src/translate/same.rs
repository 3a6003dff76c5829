//! What a server of the newest era leaves out that its clients are promised, whoever is in between.

use serde_json::json;

use super::{get, is_cacheable, remove_all};
use crate::json::{self, EditError};
use crate::message::Message;
use crate::meta::MetaKey;
use crate::method;
use crate::revision::Revision;

/// A result with everything that it has to say; nothing when it says all of it. Tools that are marked in a way that
/// cannot work are not offered.
pub fn completed(method: &str, result: &str) -> Result<Option<String>, EditError> {
    let mut changed: Option<String> = None;
    if method == method::TOOLS_LIST {
        let listed = super::with_good_mirrors(result);
        changed = (listed != result).then_some(listed);
    }
    if method == method::DISCOVER {
        // Whoever is between a client and a server speaks for both.
        let versions = json!(Revision::ALL.map(Revision::text)).to_string();
        changed = Some(json::set(result, &["supportedVersions"], &versions)?).filter(|told| told != result);
    }
    let text = |changed: &Option<String>| changed.clone().unwrap_or_else(|| result.to_owned());
    let kind = get(result, &["resultType"]);
    if kind.is_none() {
        changed = Some(json::set(&text(&changed), &["resultType"], "\"complete\"")?);
    }
    let is_complete = kind.is_none_or(|kind| kind == "\"complete\"");
    if is_complete && is_cacheable(method) {
        if !get(result, &["ttlMs"]).is_some_and(is_time) {
            changed = Some(json::set(&text(&changed), &["ttlMs"], "0")?);
        }
        if !matches!(get(result, &["cacheScope"]), Some("\"public\"" | "\"private\"")) {
            changed = Some(json::set(&text(&changed), &["cacheScope"], "\"private\"")?);
        }
    }
    Ok(changed)
}

/// A message of a session without what only requests that stand alone say about themselves; nothing when it says none of
/// it.
pub fn without_claims(message: &Message) -> Result<Option<String>, EditError> {
    let claims = MetaKey::BETWEEN_NEIGHBOURS;
    if claims.iter().all(|key| message.meta(*key).is_none()) {
        return Ok(None);
    }
    remove_all(message.as_str().to_owned(), &["params", "_meta"], &claims.map(MetaKey::name)).map(Some)
}

/// Whether a value is a number of milliseconds.
fn is_time(value: &str) -> bool {
    value.parse::<f64>().is_ok_and(|time| time.is_finite() && time >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_and_nothing_else_is_touched() {
        for (method, result, expected) in [
            ("tools/call", r#"{"content":[ ]}"#, Some(r#"{"content":[ ],"resultType":"complete"}"#)),
            ("tools/call", r#"{"resultType":"complete" ,"x":1.0}"#, None),
            ("tools/call", r#"{"resultType":"task","taskId":"t"}"#, None),
            (
                "prompts/list",
                r#"{"prompts":[]}"#,
                Some(r#"{"prompts":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#),
            ),
            ("prompts/list", r#"{"resultType":"complete","ttlMs":5e3,"cacheScope":"public"}"#, None),
            (
                "resources/read",
                r#"{"resultType":"complete","ttlMs":-1,"cacheScope":"ours"}"#,
                Some(r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#),
            ),
            ("resources/read", r#"{"resultType":"input_required","requestState":"s"}"#, None),
        ] {
            assert_eq!(completed(method, result).unwrap().as_deref(), expected, "{method}: {result}");
        }
        assert!(completed("tools/call", "7").is_err());
    }

    #[test]
    fn a_session_needs_no_claims_with_every_message() {
        let without = |text: &'static str| {
            without_claims(&Message::read(bytes::Bytes::from_static(text.as_bytes())).unwrap()).unwrap()
        };
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1}}}"#;
        assert_eq!(without(plain), None);
        let claims = r#"{"jsonrpc":"2.0", "id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{},"x":1.0}}}"#;
        assert_eq!(
            without(claims).as_deref(),
            Some(r#"{"jsonrpc":"2.0", "id":1,"method":"a","params":{"_meta":{"x":1.0}}}"#)
        );
    }

    #[test]
    fn a_tool_that_nobody_could_call_is_not_listed() {
        let good = r#"{"name":"a","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}"#;
        let bad = good.replace("string", "number");
        let around = r#""resultType":"complete","ttlMs":1,"cacheScope":"public""#;
        let listed = completed("tools/list", &format!(r#"{{"tools":[{good},{bad}],{around}}}"#)).unwrap();
        assert_eq!(listed.unwrap(), format!(r#"{{"tools":[{good}],{around}}}"#));
    }
}
