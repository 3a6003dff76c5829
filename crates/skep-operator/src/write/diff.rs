//! What has to be sent to turn one JSON document into another.

use serde_json::{Map, Value};

/// The JSON merge patch that turns `before` into `after`; `None` when there is nothing to change.
///
/// Members that are null in `after` count as absent, because a merge patch cannot say anything else.
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in new {
        let known = old.get(name).unwrap_or(&Value::Null);
        if let Some(change) = merge_patch(known, value) {
            patch.insert(name.clone(), change);
        }
    }
    for (name, value) in old {
        if !new.contains_key(name) && !value.is_null() {
            patch.insert(name.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Whether a merge patch replaces a list of `before` as a whole, or takes it away, and with it what others have put there.
pub fn replaces_a_list(before: &Value, patch: &Value) -> bool {
    match (before, patch) {
        (_, Value::Array(_)) | (Value::Array(_), Value::Null) => true,
        (before, Value::Object(members)) => {
            members.iter().any(|(name, member)| replaces_a_list(before.get(name).unwrap_or(&Value::Null), member))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_are_sent() {
        let before = json!({"phase": "Pending", "url": "u", "list": [1], "in": {"a": 1, "b": 2}});
        assert_eq!(merge_patch(&before, &before), None);
        let after = json!({"phase": "Ready", "list": [1], "in": {"a": 1, "c": 3}});
        let expected = json!({"phase": "Ready", "url": null, "in": {"b": null, "c": 3}});
        assert_eq!(merge_patch(&before, &after), Some(expected.clone()));
        assert!(!replaces_a_list(&before, &expected));
        assert!(replaces_a_list(&before, &json!({"in": {"list": []}})));
        assert!(replaces_a_list(&before, &json!({"list": null})));
        assert_eq!(merge_patch(&Value::Null, &json!({})), Some(json!({})));
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patch_leads_to_the_document_it_was_made_for(before in documents(), after in documents()) {
            let mut patched = before.clone();
            if let Some(patch) = merge_patch(&before, &after) {
                json_patch::merge(&mut patched, &patch);
            }
            prop_assert_eq!(patched, after);
        }
    }
}
