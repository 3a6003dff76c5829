//! Opaque fingerprints of configuration. Equal documents have equal hashes whatever the order of their members.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Length of a config hash in hexadecimal digits.
pub const CONFIG_HASH_LENGTH: usize = 16;

/// The hash that a config kind publishes as `status.configHash`: the first sixteen hexadecimal digits of the
/// SHA-256 of the spec's canonical JSON. A member that is null or empty says as much as one that is missing.
pub fn config_hash<T: Serialize>(spec: &T) -> Result<String, serde_json::Error> {
    let mut spec = serde_json::to_value(spec)?;
    drop_what_says_nothing(&mut spec);
    let mut digest = sha256_hex(canonical_json(&spec)?.as_bytes());
    digest.truncate(CONFIG_HASH_LENGTH);
    Ok(digest)
}

/// Items of a list stay, whatever they are: they have their places.
fn drop_what_says_nothing(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_what_says_nothing),
        Value::Object(members) => {
            members.values_mut().for_each(drop_what_says_nothing);
            members.retain(|_, member| match member {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(members) => !members.is_empty(),
                _ => true,
            });
        }
        _ => {}
    }
}

/// Lower-case hexadecimal SHA-256.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// JSON without white space and with the members of every object in byte order of their names.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    write_canonical(&serde_json::to_value(value)?, &mut text)?;
    Ok(text)
}

// Sorted by hand: serde_json sorts only while no crate in the build turns on `preserve_order`.
fn write_canonical(value: &Value, text: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            text.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&serde_json::to_string(name)?);
                text.push(':');
                write_canonical(&members[name], text)?;
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text)?;
            }
            text.push(']');
        }
        scalar => text.push_str(&serde_json::to_string(scalar)?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn member_order_does_not_change_the_hash() {
        let one: Value = serde_json::from_str(r#"{"b":{"y":1,"x":[2,1]},"a":null}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":null,"b":{"x":[2,1],"y":1}}"#).unwrap();
        assert_eq!(canonical_json(&one).unwrap(), r#"{"a":null,"b":{"x":[2,1],"y":1}}"#);
        assert_eq!(config_hash(&one).unwrap(), config_hash(&other).unwrap());
    }

    #[test]
    fn what_says_nothing_does_not_change_the_hash() {
        let base = config_hash(&json!({"a": {"b": 1}, "list": [{}]})).unwrap();
        let more = json!({"a": {"b": 1, "c": null, "d": [], "e": {"f": {}}}, "list": [{"g": null}], "h": {}});
        assert_eq!(base, config_hash(&more).unwrap());
        for other in [json!({"a": {"b": 1}, "list": []}), json!({"a": {"b": 1, "c": ""}, "list": [{}]})] {
            assert_ne!(base, config_hash(&other).unwrap(), "{other}");
        }
    }

    #[test]
    fn order_of_a_list_and_every_value_change_the_hash() {
        let base = config_hash(&json!({"a": [1, 2]})).unwrap();
        assert_ne!(base, config_hash(&json!({"a": [2, 1]})).unwrap());
        assert_ne!(base, config_hash(&json!({"a": [1, 2], "b": false})).unwrap());
    }

    #[test]
    fn config_hash_is_sixteen_hexadecimal_digits_of_sha256() {
        // SHA-256 of the two bytes `{}`.
        assert_eq!(config_hash(&json!({})).unwrap(), "44136fa355b3678a");
    }
}
