//! How a callback may change a message: JSON Patch within the message, and nothing beyond.

use json_patch::PatchOperation;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use skep_mcp::json;

use super::document::Change;
use super::exact::Exact;

/// The message within the document that a callback sees.
const MESSAGE: &str = "mcp_request";
const SCOPE: &str = "/mcp_request/";
/// Steps of one change.
const MOST_OPERATIONS: usize = 1_000;
/// Bytes that one change may add, so that copies of copies end.
const LARGEST_GROWTH: usize = 8 << 20;
/// How deep a change may put something. Nobody reads what is deeper, and it would not fit on anybody's stack.
const DEEPEST: usize = 128;

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
    let exact = Exact::new();
    let operations = read(&exact.read(&change.patch).ok_or(PatchError::Malformed)?)?;
    let before = exact.read(message).ok_or(PatchError::Apply)?;
    let mut envelope = Value::Object(Map::from_iter([(MESSAGE.to_owned(), before.clone())]));
    let mut growth = 0;
    for operation in &operations {
        growth += added(&envelope, operation);
        if growth > LARGEST_GROWTH || deepest(&envelope, operation) > DEEPEST {
            return Err(PatchError::Apply);
        }
        if let PatchOperation::Test(test) = operation {
            let found = envelope.pointer(test.path.as_str()).ok_or(PatchError::Apply)?;
            exact.means(found, &test.value).then_some(()).ok_or(PatchError::Apply)?;
        } else {
            json_patch::patch(&mut envelope, std::slice::from_ref(operation)).map_err(|_| PatchError::Apply)?;
        }
    }
    let after = envelope.get(MESSAGE).ok_or(PatchError::Extract)?;
    Ok(rewritten(&exact, message, &before, after))
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

/// How deep a message gets by what an operation puts into it.
fn deepest(envelope: &Value, operation: &PatchOperation) -> usize {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Copy(copy) => (&copy.path, envelope.pointer(copy.from.as_str())),
        PatchOperation::Move(moved) => (&moved.path, envelope.pointer(moved.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return 0,
    };
    // The message itself is the first name of every path.
    path.as_str().matches('/').count() - 1 + value.map_or(0, depth)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
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
fn rewritten(exact: &Exact, text: &str, before: &Value, after: &Value) -> String {
    if before == after {
        return text.to_owned();
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => members(exact, text, old, new),
        (Value::Array(old), Value::Array(new)) => items(exact, text, old, new),
        _ => None,
    }
    .unwrap_or_else(|| exact.text(after))
}

fn members(exact: &Exact, text: &str, old: &Map<String, Value>, new: &Map<String, Value>) -> Option<String> {
    let members = json::members(text).ok()?;
    let kept = members.iter().filter_map(|(name, text)| {
        let (old, new) = (old.get(&**name)?, new.get(&**name)?);
        Some((&**name, rewritten(exact, text, old, new)))
    });
    let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
    let all = kept.chain(added.map(|(name, value)| (name.as_str(), exact.text(value))));
    let all: Vec<String> = all.map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    Some(format!("{{{}}}", all.join(",")))
}

/// Those before and behind a change stay. Those in between are compared one by one, as far as there are as many.
fn items(exact: &Exact, text: &str, old: &[Value], new: &[Value]) -> Option<String> {
    let texts = json::items(text).ok().filter(|texts| texts.len() == old.len())?;
    let is_same = |(old, new): &(&Value, &Value)| old == new;
    let front = old.iter().zip(new).take_while(is_same).count();
    let behind = old[front..].iter().rev().zip(new[front..].iter().rev()).take_while(is_same).count();
    let between = old.len() - behind;
    let changed = new[front..new.len() - behind].iter().enumerate().map(|(place, new)| {
        let place = front + place;
        match old[..between].get(place) {
            Some(old) => rewritten(exact, texts[place], old, new),
            None => exact.text(new),
        }
    });
    let kept = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let all: Vec<String> = kept(&texts[..front]).into_iter().chain(changed).chain(kept(&texts[between..])).collect();
    Some(format!("[{}]", all.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CALL: &str = r#"{"jsonrpc":"2.0", "id":12345678901234567890123,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50,"b":[1,2]},"z":1e2}}"#;

    fn changed(patch: &impl ToString) -> Result<String, PatchError> {
        apply(CALL, &Change { is_json_patch: true, patch: patch.to_string() })
    }

    #[test]
    fn what_a_change_does_not_touch_stays_as_it_was_written() {
        let patch = json!([
            {"op": "test", "path": "/mcp_request/method", "value": "tools/call"},
            {"op": "replace", "path": "/mcp_request/params/name", "value": "b"},
            {"op": "add", "path": "/mcp_request/params/arguments/new", "value": true},
        ]);
        assert_eq!(
            changed(&patch).unwrap(),
            r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"tools/call","params":{"name":"b","arguments":{"n":1.50,"b":[1,2],"new":true},"z":1e2}}"#
        );
        let nothing = json!([{"op": "replace", "path": "/mcp_request/params/name", "value": "a"}]);
        assert_eq!(changed(&nothing).unwrap(), CALL);
    }

    #[test]
    fn the_neighbours_of_a_changed_item_stay_as_they_were_written() {
        const IDS: &str =
            r#"{"id":1,"ids":[12345678901234567890123,1],"a":[ {"x":1.0, "y":"\u0061"}, 2.50, [3e1,4] ],"b":1e999}"#;
        for (patch, ids, a) in [
            (
                json!([{"op": "replace", "path": "/mcp_request/ids/1", "value": 2}]),
                "[12345678901234567890123,2]",
                r#"[ {"x":1.0, "y":"\u0061"}, 2.50, [3e1,4] ]"#,
            ),
            (
                json!([{"op": "add", "path": "/mcp_request/a/0", "value": "new"}, {"op": "remove", "path": "/mcp_request/ids/1"}]),
                "[12345678901234567890123]",
                r#"["new",{"x":1.0, "y":"\u0061"},2.50,[3e1,4]]"#,
            ),
            (
                json!([{"op": "replace", "path": "/mcp_request/a/2/1", "value": 5}, {"op": "move", "from": "/mcp_request/ids/0", "path": "/mcp_request/ids/1"}]),
                "[1,12345678901234567890123]",
                r#"[{"x":1.0, "y":"\u0061"},2.50,[3e1,5]]"#,
            ),
        ] {
            let text = apply(IDS, &Change { is_json_patch: true, patch: patch.to_string() }).unwrap();
            assert_eq!(text, format!(r#"{{"id":1,"ids":{ids},"a":{a},"b":1e999}}"#), "{patch}");
        }
    }

    #[test]
    fn a_number_that_differs_in_its_last_digit_is_another_one() {
        let replace = |value| format!(r#"[{{"op":"replace","path":"/mcp_request/params/z","value":{value}}}]"#);
        let compare = |value| format!(r#"[{{"op":"test","path":"/mcp_request/params/z","value":{value}}}]"#);
        let text = changed(&replace("12345678901234567890124")).unwrap();
        assert!(text.ends_with(r#""z":12345678901234567890124}}"#), "{text}");
        let again = |patch: String| apply(&text, &Change { is_json_patch: true, patch });
        let third = again(replace("12345678901234567890125")).unwrap();
        assert!(third.ends_with(r#""z":12345678901234567890125}}"#), "{third}");
        assert_eq!(again(compare("12345678901234567890124")), Ok(text.clone()));
        assert_eq!(again(compare("12345678901234567890123")), Err(PatchError::Apply));
        assert_eq!(changed(&compare("100")), Ok(CALL.to_owned()), "it is written as 1e2");
    }

    #[test]
    fn members_can_go_and_move() {
        let patch = json!([
            {"op": "move", "from": "/mcp_request/params/arguments/n", "path": "/mcp_request/params/arguments/m"},
            {"op": "remove", "path": "/mcp_request/params/z"},
            {"op": "copy", "from": "/mcp_request/params/name", "path": "/mcp_request/params/arguments/b/0"},
        ]);
        let text = changed(&patch).unwrap();
        assert!(text.ends_with(r#""params":{"name":"a","arguments":{"b":["a",1,2],"m":1.50}}}"#), "{text}");
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
            assert_eq!(changed(&patch), Err(expected), "{patch}");
        }
        assert_eq!(apply(CALL, &Change { is_json_patch: false, patch: "[]".to_owned() }), Err(PatchError::Type));
    }

    #[test]
    fn copies_within_themselves_end() {
        const NESTED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
        // Each one makes the message twice as deep.
        let nested = |depth: usize| format!("/mcp_request/params{}", "/a".repeat(depth));
        let copy = |power: u32| json!({"op": "copy", "from": "/mcp_request/params", "path": nested(1_usize << power)});
        let patch = |copies| (0..copies).map(copy).collect::<Value>();
        let changed = |copies| apply(NESTED, &Change { is_json_patch: true, patch: patch(copies).to_string() });
        assert!(changed(6).is_ok());
        for copies in [7, 16] {
            assert_eq!(changed(copies), Err(PatchError::Apply));
        }
    }

    #[test]
    fn copies_of_copies_end() {
        let double =
            json!({"op": "copy", "from": "/mcp_request/params", "path": "/mcp_request/params/arguments/again"});
        assert_eq!(changed(&json!(vec![double; 1_000])), Err(PatchError::Apply));
    }
}
