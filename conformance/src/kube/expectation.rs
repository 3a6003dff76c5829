//! Whether an answer is what a scenario expects: a pattern names only what matters.

use regex::Regex;
use serde_json::Value;

/// What is wrong with `actual`, each with the place.
///
/// Objects may have more members than the pattern; lists have exactly its items. Texts that begin with `$` match by
/// rule: `$any`, `$absent`, `$regex …`, `$length n`; an object `{$contains: […]}` matches a list that has such items.
pub(super) fn mismatches(pattern: &Value, actual: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    visit("", pattern, actual, &mut found);
    found
}

fn visit(place: &str, pattern: &Value, actual: Option<&Value>, found: &mut Vec<String>) {
    let shown = || actual.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    match (pattern, actual) {
        (Value::String(rule), _) if rule.starts_with('$') => {
            if !obeys(rule, actual) {
                found.push(format!("{place}: {} does not match {rule:?}", shown()));
            }
        }
        (Value::Object(wanted), Some(Value::Array(items))) if wanted.contains_key("$contains") => {
            for item in wanted["$contains"].as_array().into_iter().flatten() {
                if !items.iter().any(|candidate| mismatches(item, Some(candidate)).is_empty()) {
                    found.push(format!("{place}: no item like {item} in {}", shown()));
                }
            }
        }
        (Value::Object(wanted), Some(Value::Object(members))) => {
            for (key, member) in wanted {
                visit(&format!("{place}/{key}"), member, members.get(key), found);
            }
        }
        (Value::Array(wanted), Some(Value::Array(items))) => {
            if wanted.len() != items.len() {
                found.push(format!("{place}: {} items instead of {}: {}", items.len(), wanted.len(), shown()));
            }
            for (index, (item, candidate)) in wanted.iter().zip(items).enumerate() {
                visit(&format!("{place}/{index}"), item, Some(candidate), found);
            }
        }
        (wanted, Some(value)) if wanted == value => {}
        (wanted, _) => found.push(format!("{place}: {} instead of {wanted}", shown())),
    }
}

fn obeys(rule: &str, actual: Option<&Value>) -> bool {
    let (name, argument) = rule.split_once(' ').unwrap_or((rule, ""));
    match (name, actual) {
        ("$any", Some(value)) => !value.is_null(),
        ("$absent", value) => value.is_none_or(Value::is_null),
        ("$regex", Some(Value::String(text))) => Regex::new(argument).is_ok_and(|regex| regex.is_match(text)),
        ("$length", Some(value)) => {
            let length = match value {
                Value::Array(items) => Some(items.len()),
                Value::Object(members) => Some(members.len()),
                Value::String(text) => Some(text.len()),
                _ => None,
            };
            length.is_some() && length == argument.parse().ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(pattern: &Value, actual: &Value) -> bool {
        mismatches(pattern, Some(actual)).is_empty()
    }

    #[test]
    fn objects_match_by_subset_and_lists_exactly() {
        assert!(matches(&json!({ "a": 1 }), &json!({ "a": 1, "b": 2 })));
        assert!(!matches(&json!({ "a": 1 }), &json!({ "b": 2 })));
        assert!(!matches(&json!([1]), &json!([1, 2])));
        assert!(matches(&json!({ "$contains": [{ "n": 2 }] }), &json!([{ "n": 1 }, { "n": 2, "m": 3 }])));
        assert!(!matches(&json!({ "$contains": [{ "n": 4 }] }), &json!([{ "n": 1 }])));
    }

    #[test]
    fn rules_match() {
        let actual = json!({ "text": "abc", "list": [1, 2] });
        assert!(matches(&json!({ "text": "$any", "gone": "$absent", "list": "$length 2" }), &actual));
        assert!(matches(&json!({ "text": "$regex ^a.c$" }), &actual));
        assert!(!matches(&json!({ "text": "$absent" }), &actual));
        assert!(!matches(&json!({ "gone": "$any" }), &actual));
        assert!(!matches(&json!({ "list": "$length 3" }), &actual));
    }
}
