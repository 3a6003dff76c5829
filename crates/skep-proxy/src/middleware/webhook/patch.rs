//! How a callback may change a message: JSON Patch within the message, and nothing beyond.

use json_patch::PatchOperation;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use skep_mcp::json;

use super::document::Change;

/// The message within the document that a callback sees.
const MESSAGE: &str = "mcp_request";
const SCOPE: &str = "/mcp_request/";
/// Steps of one change.
const MOST_OPERATIONS: usize = 1_000;
/// Bytes that one change may add, so that copies of copies end.
const LARGEST_GROWTH: usize = 8 << 20;

/// Why a change is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub(super) enum PatchError {
    Type,
    Malformed,
    Invalid,
    Scope,
    Apply,
    Extract,
}

impl PatchError {
    /// What the client is told.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Type => "Unsupported patch type from webhook",
            Self::Malformed => "Malformed patch from webhook",
            Self::Invalid => "Invalid patch from webhook",
            Self::Scope => "Patch must be scoped to mcp_request",
            Self::Apply => "Failed to apply patch from webhook",
            Self::Extract => "Internal error extracting patched request",
        }
    }
}

/// The message with a change. What the change does not touch stays as it was written.
pub(super) fn apply(message: &str, change: &Change) -> Result<String, PatchError> {
    if !change.is_json_patch {
        return Err(PatchError::Type);
    }
    let operations = read(&change.patch)?;
    let before: Value = serde_json::from_str(message).map_err(|_| PatchError::Apply)?;
    let mut envelope = Value::Object(Map::from_iter([(MESSAGE.to_owned(), before.clone())]));
    let mut growth = 0;
    for operation in &operations {
        growth += added(&envelope, operation);
        if growth > LARGEST_GROWTH {
            return Err(PatchError::Apply);
        }
        json_patch::patch(&mut envelope, std::slice::from_ref(operation)).map_err(|_| PatchError::Apply)?;
    }
    let after = envelope.get(MESSAGE).ok_or(PatchError::Extract)?;
    Ok(rewritten(message, &before, after))
}

fn read(patch: &Value) -> Result<Vec<PatchOperation>, PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Malformed)?;
    if operations.len() > MOST_OPERATIONS {
        return Err(PatchError::Invalid);
    }
    if !operations.iter().all(Value::is_object) {
        return Err(PatchError::Malformed);
    }
    operations.iter().map(operation).collect()
}

fn operation(operation: &Value) -> Result<PatchOperation, PatchError> {
    let read = PatchOperation::deserialize(operation).map_err(|_| PatchError::Invalid)?;
    let is_within = |name: &str| operation.get(name).and_then(Value::as_str).is_some_and(|at| at.starts_with(SCOPE));
    let has_source = matches!(read, PatchOperation::Copy(_) | PatchOperation::Move(_));
    if is_within("path") && (!has_source || is_within("from")) { Ok(read) } else { Err(PatchError::Scope) }
}

/// About how many bytes an operation adds.
fn added(envelope: &Value, operation: &PatchOperation) -> usize {
    match operation {
        PatchOperation::Add(add) => size(&add.value),
        PatchOperation::Replace(replace) => size(&replace.value),
        PatchOperation::Copy(copy) => envelope.pointer(copy.from.as_str()).map_or(0, size),
        PatchOperation::Remove(_) | PatchOperation::Move(_) | PatchOperation::Test(_) => 0,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(name, member)| name.len() + size(member) + 4).sum::<usize>() + 2,
    }
}

/// Text for a changed value that repeats the old text wherever the value did not change, so that numbers, spaces and the
/// order of members come through as they were.
fn rewritten(text: &str, before: &Value, after: &Value) -> String {
    if before == after {
        return text.to_owned();
    }
    let (Value::Object(old), Value::Object(new), Ok(members)) = (before, after, json::members(text)) else {
        return after.to_string();
    };
    let kept = members.iter().filter_map(|(name, text)| {
        let (old, new) = (old.get(&**name)?, new.get(&**name)?);
        Some((&**name, rewritten(text, old, new)))
    });
    let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
    let all = kept.chain(added.map(|(name, value)| (name.as_str(), value.to_string())));
    let all: Vec<String> = all.map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CALL: &str = r#"{"jsonrpc":"2.0", "id":12345678901234567890123,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50,"b":[1,2]},"z":1e2}}"#;

    fn changed(patch: Value) -> Result<String, PatchError> {
        apply(CALL, &Change { is_json_patch: true, patch })
    }

    #[test]
    fn what_a_change_does_not_touch_stays_as_it_was_written() {
        let patch = json!([
            {"op": "test", "path": "/mcp_request/method", "value": "tools/call"},
            {"op": "replace", "path": "/mcp_request/params/name", "value": "b"},
            {"op": "add", "path": "/mcp_request/params/arguments/new", "value": true},
        ]);
        assert_eq!(
            changed(patch).unwrap(),
            r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"tools/call","params":{"name":"b","arguments":{"n":1.50,"b":[1,2],"new":true},"z":1e2}}"#
        );
        let nothing = json!([{"op": "replace", "path": "/mcp_request/params/name", "value": "a"}]);
        assert_eq!(changed(nothing).unwrap(), CALL);
    }

    #[test]
    fn members_can_go_and_move() {
        let patch = json!([
            {"op": "move", "from": "/mcp_request/params/arguments/n", "path": "/mcp_request/params/arguments/m"},
            {"op": "remove", "path": "/mcp_request/params/z"},
            {"op": "copy", "from": "/mcp_request/params/name", "path": "/mcp_request/params/arguments/b/0"},
        ]);
        let text = changed(patch).unwrap();
        assert!(text.ends_with(r#""params":{"name":"a","arguments":{"b":["a",1,2],"m":1.5}}}"#), "{text}");
    }

    #[test]
    fn what_is_wrong_with_a_change_is_told() {
        for (patch, expected) in [
            (json!({}), PatchError::Malformed),
            (json!("x"), PatchError::Malformed),
            (json!([1]), PatchError::Malformed),
            (json!([{"op": "merge", "path": "/mcp_request/id"}]), PatchError::Invalid),
            (json!([{"op": "remove"}]), PatchError::Invalid),
            (json!([{"op": "copy", "path": "/mcp_request/id"}]), PatchError::Invalid),
            (json!([{"op": "remove", "path": "/mcp_request"}]), PatchError::Scope),
            (json!([{"op": "remove", "path": "/mcp_requests/id"}]), PatchError::Scope),
            (json!([{"op": "add", "path": "/context/server_name", "value": 1}]), PatchError::Scope),
            (json!([{"op": "copy", "from": "/principal", "path": "/mcp_request/params/x"}]), PatchError::Scope),
            (json!([{"op": "remove", "path": "/mcp_request/nowhere"}]), PatchError::Apply),
            (json!([{"op": "test", "path": "/mcp_request/method", "value": "ping"}]), PatchError::Apply),
            (json!(vec![json!({"op": "remove", "path": "/mcp_request/id"}); 1_001]), PatchError::Invalid),
        ] {
            assert_eq!(changed(patch.clone()), Err(expected), "{patch}");
        }
        assert_eq!(apply(CALL, &Change { is_json_patch: false, patch: json!([]) }), Err(PatchError::Type));
    }

    #[test]
    fn copies_of_copies_end() {
        let double =
            json!({"op": "copy", "from": "/mcp_request/params", "path": "/mcp_request/params/arguments/again"});
        assert_eq!(changed(json!(vec![double; 1_000])), Err(PatchError::Apply));
    }
}
