//! What a message is about, in one word: what audit records and policies know it by.

use std::borrow::Cow;

use serde_json::Value;
use skep_mcp::{Message, Param, method};

/// So much of a prompt stands for it, in bytes.
const PROMPT: usize = 50;

/// The name, address or id that a message is about. Nothing when it is about nothing in particular.
pub(crate) fn subject(message: &Message) -> Option<Cow<'_, str>> {
    let fixed = match message.method() {
        method::TOOLS_CALL | method::PROMPTS_GET => return message.param_text(Param::Name),
        method::RESOURCES_READ | method::SUBSCRIBE | method::UNSUBSCRIBE => return message.param_text(Param::Uri),
        method::SET_LOG_LEVEL => return message.param_text(Param::Level),
        "tasks/get" | "tasks/cancel" | "tasks/result" | "notifications/tasks/status" => {
            return message.param_text(Param::TaskId);
        }
        method::PING => Some("ping"),
        method::DISCOVER => Some("discover"),
        method::INITIALIZED => Some("initialized"),
        method::ROOTS_CHANGED => Some("roots"),
        "notifications/prompts/list_changed" => Some("prompts"),
        "notifications/tools/list_changed" => Some("tools"),
        "notifications/resources/list_changed" | method::RESOURCE_UPDATED => Some("resources"),
        _ => None,
    };
    fixed.map(Cow::Borrowed).or_else(|| looked_up(message).map(Cow::Owned))
}

/// Subjects that are rare enough to be looked up each time.
fn looked_up(message: &Message) -> Option<String> {
    let place: &[&str] = match message.method() {
        method::INITIALIZE => &["/clientInfo/name"],
        method::TOOLS_LIST
        | method::PROMPTS_LIST
        | method::RESOURCES_LIST
        | method::TEMPLATES_LIST
        | "roots/list"
        | "tasks/list" => &["/cursor"],
        "completion/complete" => &["/ref/name", "/ref/uri", "/ref"],
        "sampling/createMessage" => &["/modelPreferences/name", "/modelPreferences/hints/0/name", "/systemPrompt"],
        "elicitation/create" => &["/message"],
        method::LOG_MESSAGE => &["/method"],
        method::PROGRESS => &["/progressToken"],
        method::CANCELLED => &["/requestId"],
        "notifications/elicitation/complete" => &["/elicitationId"],
        _ => return None,
    };
    let params: Value = serde_json::from_str(message.params_span()?.of(message.as_str())).ok()?;
    let found = place.iter().find_map(|place| Some((*place, text(params.pointer(place)?)?)));
    found.map(|(place, text)| if place == "/systemPrompt" { cut(&text, PROMPT).to_owned() } else { text })
}

/// A string, or a number without its fraction.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.as_i64().map_or_else(|| number.to_string(), |whole| whole.to_string())),
        _ => None,
    }
}

/// The beginning of a text, at most so many bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_known_by_what_it_is_about() {
        for (method, params, expected) in [
            ("tools/call", json!({"name": "feed"}), Some("feed")),
            ("resources/read", json!({"uri": "hive://1"}), Some("hive://1")),
            ("initialize", json!({"clientInfo": {"name": "probe"}}), Some("probe")),
            ("tools/list", json!({"cursor": "n"}), Some("n")),
            ("tools/list", json!({}), None),
            ("completion/complete", json!({"ref": {"uri": "a"}}), Some("a")),
            ("completion/complete", json!({"ref": "b"}), Some("b")),
            ("sampling/createMessage", json!({"systemPrompt": "é".repeat(40)}), Some(&*"é".repeat(25))),
            ("sampling/createMessage", json!({"modelPreferences": {"hints": [{"name": "m"}]}}), Some("m")),
            ("notifications/cancelled", json!({"requestId": 7}), Some("7")),
            ("ping", json!({}), Some("ping")),
            ("server/discover", json!({}), Some("discover")),
            ("x/y", json!({"name": "a"}), None),
        ] {
            let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            let message = Message::read(Bytes::from(text)).unwrap();
            assert_eq!(subject(&message).as_deref(), expected, "{method} {params}");
        }
    }
}
