//! Objects in the byte order of their members' names, which is how Kubernetes keeps, hashes and prints them. A `Value` has
//! its members in the order in which they came (docs/adr/0007-json-keeps-its-order.md).

use serde_json::{Map, Value};

/// The members of an object in order.
pub(crate) fn members(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}

/// Writes a value as JSON.
pub(crate) fn write(value: &Value, bytes: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(object) => {
            bytes.push(b'{');
            for (index, (name, member)) in members(object).into_iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                serde_json::to_writer(&mut *bytes, name)?;
                bytes.push(b':');
                write(member, bytes)?;
            }
            bytes.push(b'}');
        }
        Value::Array(items) => {
            bytes.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write(item, bytes)?;
            }
            bytes.push(b']');
        }
        scalar => serde_json::to_writer(bytes, scalar)?,
    }
    Ok(())
}

/// A value as JSON. Equal values have equal texts.
pub(crate) fn text(value: &Value) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail, and what is written is text.
    let _ = write(value, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_have_equal_texts() {
        let one = json!({"b": [{"d": 1.5, "c": null}], "a": "x\"y"});
        let other = json!({"a": "x\"y", "b": [{"c": null, "d": 1.5}]});
        assert_eq!(text(&one), r#"{"a":"x\"y","b":[{"c":null,"d":1.5}]}"#);
        assert_eq!(text(&one), text(&other));
    }
}
