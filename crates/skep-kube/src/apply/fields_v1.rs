//! FieldsV1: how field sets stand in `metadata.managedFields`.
//!
//! Each element of a path is a member of a JSON object, nested as the paths are. A path ends at an empty object, or,
//! when longer paths begin with it, at a member named `.`.

use serde_json::{Map, Value};

use super::NESTING_LIMIT;
use super::field_set::{Entry, FieldSet};
use super::path::{Literal, PathElement};

/// Why a document is not FieldsV1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    #[error("field sets are JSON objects")]
    NotAnObject,
    #[error("{0:?} is not an element of a path")]
    NotAnElement(String),
    #[error("fields are nested too deeply")]
    TooDeep,
}

/// The document of a set, in the same order as [`encode_text`].
pub fn encode(set: &FieldSet) -> Value {
    encode_entry(set, false)
}

fn encode_entry(set: &FieldSet, itself: bool) -> Value {
    let mut document = Map::new();
    if itself && !set.is_empty() {
        document.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (element, entry) in set.entries() {
        document.insert(encode_element(element), encode_entry(&entry.below, entry.member));
    }
    Value::Object(document)
}

/// The document of a set, byte for byte as the real server writes it: `.` first, then elements in their order.
pub fn encode_text(set: &FieldSet) -> String {
    let mut text = String::new();
    write_set(set, false, &mut text);
    text
}

fn write_set(set: &FieldSet, itself: bool, text: &mut String) {
    let mut members: Vec<String> = Vec::new();
    if itself && !set.is_empty() {
        members.push(r#"".":{}"#.to_owned());
    }
    for (element, entry) in set.entries() {
        let mut member = Value::String(encode_element(element)).to_string();
        member.push(':');
        write_set(&entry.below, entry.member, &mut member);
        members.push(member);
    }
    text.push('{');
    text.push_str(&members.join(","));
    text.push('}');
}

fn encode_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(keys) => {
            let keys: Map<String, Value> = keys.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
            format!("k:{}", Value::Object(keys))
        }
        PathElement::Value(value) => format!("v:{}", value.0),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

/// The set of a document.
pub fn decode(document: &Value) -> Result<FieldSet, FieldsError> {
    let document = document.as_object().ok_or(FieldsError::NotAnObject)?;
    Ok(decode_entry(document, 0)?.below)
}

fn decode_entry(document: &Map<String, Value>, depth: usize) -> Result<Entry, FieldsError> {
    if depth > NESTING_LIMIT {
        return Err(FieldsError::TooDeep);
    }
    let mut entry = Entry::default();
    for (name, value) in document {
        if name == "." {
            entry.member = true;
        } else if let Some(element) = decode_element(name)? {
            let mut below = match value {
                Value::Object(value) => decode_entry(value, depth + 1)?,
                Value::Null => Entry::default(),
                _ => return Err(FieldsError::NotAnObject),
            };
            below.member |= below.below.is_empty();
            entry.below.put(element, below);
        }
    }
    Ok(entry)
}

/// None for a kind of element that is unknown: a later version may know it, and this one has no use for it.
fn decode_element(name: &str) -> Result<Option<PathElement>, FieldsError> {
    let wrong = || FieldsError::NotAnElement(name.to_owned());
    let mut characters = name.chars();
    let (kind, colon) = (characters.next(), characters.next());
    if colon != Some(':') {
        return Err(wrong());
    }
    let text = characters.as_str();
    let element = match kind {
        Some('f') => PathElement::field(text),
        Some('k') => {
            let keys: Map<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
            let mut keys: Vec<_> = keys.into_iter().map(|(name, value)| (name, Literal(value))).collect();
            keys.sort();
            PathElement::Key(keys)
        }
        Some('v') => PathElement::Value(Literal(serde_json::from_str(text).map_err(|_| wrong())?)),
        Some('i') => PathElement::Index(text.parse().map_err(|_| wrong())?),
        _ => return Ok(None),
    };
    Ok(Some(element))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn members_with_longer_paths_below_have_a_dot() {
        let document = json!({ "f:a": { ".": {}, "f:b": {} }, "f:c": { "v:1": {} } });
        let set = decode(&document).unwrap();
        assert_eq!(set.paths().len(), 3);
        assert_eq!(encode(&set), document);
    }

    #[test]
    fn the_text_has_the_order_of_the_real_server() {
        let document = json!({ "i:2": {}, "v:true": {}, "v:\"a\"": {}, "v:10": {}, "v:9": {}, "f:z": {},
            "k:{\"port\":443}": {}, "k:{\"port\":80}": { ".": {}, "f:port": {} } });
        assert_eq!(
            encode_text(&decode(&document).unwrap()),
            r#"{"f:z":{},"k:{\"port\":80}":{".":{},"f:port":{}},"k:{\"port\":443}":{},"v:9":{},"v:10":{},"v:\"a\"":{},"v:true":{},"i:2":{}}"#
        );
    }

    #[test]
    fn wrong_documents_are_refused_and_unknown_elements_skipped() {
        for wrong in [json!([]), json!({ "x": {} }), json!({ "f:a": 3 }), json!({ "k:{": {} }), json!({ "i:x": {} })] {
            decode(&wrong).unwrap_err();
        }
        assert_eq!(decode(&json!({ "q:a": 3, "f:a": null })).unwrap(), FieldSet::of_fields(&["a"]));
    }

    #[test]
    fn nesting_is_bounded() {
        let mut document = json!({});
        for _ in 0..1000 {
            document = json!({ "f:a": document });
        }
        assert_eq!(decode(&document), Err(FieldsError::TooDeep));
    }

    fn any_element() -> impl Strategy<Value = PathElement> {
        let literal = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            any::<bool>().prop_map(Value::from)
        ]
        .prop_map(Literal);
        prop_oneof![
            ".*".prop_map(PathElement::Field),
            prop::collection::btree_map("[a-c]{1,2}", literal.clone(), 1..3)
                .prop_map(|keys| PathElement::Key(keys.into_iter().collect())),
            literal.prop_map(PathElement::Value),
            any::<i64>().prop_map(PathElement::Index),
        ]
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!({})), Just(json!(null)), Just(json!(1)), Just(json!([]))];
        let name = prop_oneof![".{0,3}", "[fkvi.]:?.{0,4}", "k:\\{\"[a-c]\":[0-9a\"]{0,3}\\}", "v:[0-9a\"]{0,3}"];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        })
    }

    proptest! {
        #[test]
        fn a_set_survives_its_document(paths in prop::collection::vec(prop::collection::vec(any_element(), 1..5), 0..8)) {
            let mut set = FieldSet::default();
            for path in &paths {
                set.insert(path);
            }
            prop_assert_eq!(&decode(&encode(&set)).unwrap(), &set);
            let text: Value = serde_json::from_str(&encode_text(&set)).unwrap();
            prop_assert_eq!(&decode(&text).unwrap(), &set);
        }

        #[test]
        fn hostile_documents_do_no_harm(document in any_json()) {
            if let Ok(set) = decode(&document) {
                prop_assert_eq!(decode(&encode(&set)).unwrap(), set);
            }
        }
    }
}
