//! The small languages: selectors, paths and the columns made with them.

use serde_json::Value;
use skep_kube::builtin;
use skep_kube::json_path::{ColumnType, JsonPath, cell};
use skep_kube::selector::{FieldSelector, FieldSupport, LabelSelector, validate_label_selector};
use time::OffsetDateTime;

use crate::parts::{documents, split};

/// Inputs: a selector in text, one as an object, an object.
pub(super) fn selectors(input: &[u8]) {
    let Some(parts) = split(input) else { return };
    let text = parts.first().copied().unwrap_or_default();
    let part = |index: usize| {
        let bytes = parts.get(index).map(|part| part.as_bytes());
        bytes.and_then(|bytes| skep_kube::decode::decode(bytes).ok()).unwrap_or_default().value
    };
    let (as_object, object) = (part(1), part(2));
    if let Ok(selector) = LabelSelector::parse(text) {
        let again = LabelSelector::parse(&selector.to_string());
        assert_eq!(again.ok(), Some(selector), "what is shown can be read");
    }
    let support = FieldSupport::built_in("", "pods");
    if let Ok(selector) = FieldSelector::parse(text).and_then(|selector| selector.check(&support)) {
        selector.matches(&object, &support);
    }
    validate_label_selector(&as_object, "spec.selector");
    if let Ok(selector) = LabelSelector::from_object(&as_object) {
        selector.matches(&[("app".into(), "web".into()), ("tier".into(), String::new())]);
    }
}

/// Inputs: a path, an object.
pub(super) fn json_path(input: &[u8]) {
    let Some(parts) = split(input) else { return };
    let Ok(path) = JsonPath::compile(parts.first().copied().unwrap_or_default()) else { return };
    let object =
        parts.get(1).and_then(|part| skep_kube::decode::decode(part.as_bytes()).ok()).unwrap_or_default().value;
    let _ = path.try_evaluate(&object);
    for name in ["string", "integer", "number", "boolean", "date"] {
        if let Some(column) = ColumnType::read(name) {
            cell(&object, &path, column, OffsetDateTime::UNIX_EPOCH);
        }
    }
}

/// Inputs: an object, shown in the columns of every built-in kind.
pub(super) fn table(input: &[u8]) {
    let Some([object]) = documents(input) else { return };
    for kind in builtin::table() {
        let row: Vec<Value> = builtin::row(kind, &object, OffsetDateTime::UNIX_EPOCH);
        assert_eq!(row.len(), builtin::columns(kind).len(), "{} has a cell for every column", kind.kind);
    }
}
