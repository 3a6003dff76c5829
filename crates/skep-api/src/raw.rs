//! Parts of a document that Skep carries without reading: whatever is in them comes out again.
//!
//! They are written in the order of their members' names, so that equal documents have equal texts and hashes.
//!
//! Nobody knows what is in them, so it may be a secret: `Debug` prints the names of members and no values.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// A JSON object whose members are not described here. In a schema it keeps unknown fields.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject(#[serde(serialize_with = "write_members")] pub Map<String, Value>);

impl RawObject {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        MemberNames(&self.0).fmt(formatter)
    }
}

impl JsonSchema for RawObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RawObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// Any JSON value at all.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawValue(#[serde(serialize_with = "write_value")] pub Value);

impl fmt::Debug for RawValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Null => formatter.write_str("null"),
            Value::Object(members) => MemberNames(members).fmt(formatter),
            _ => formatter.write_str("…"),
        }
    }
}

impl JsonSchema for RawValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RawValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// Writes an object in order.
pub(crate) fn write_members<S: Serializer>(members: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut members = members.clone();
    members.sort_keys();
    members.values_mut().for_each(Value::sort_all_objects);
    members.serialize(serializer)
}

fn write_value<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = value.clone();
    value.sort_all_objects();
    value.serialize(serializer)
}

/// Prints the names of members without their values.
pub(crate) struct MemberNames<'a>(pub(crate) &'a Map<String, Value>);

impl fmt::Debug for MemberNames<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn debug_prints_names_and_no_values() {
        let object: RawObject = serde_json::from_value(json!({ "key": "hunter2", "more": ["hunter2"] })).unwrap();
        assert_eq!(format!("{object:?} {:?}", RawObject::default()), r#"{"key", "more"} {}"#);
        let value = |value| format!("{:?}", RawValue(value));
        assert_eq!(value(json!({ "key": { "inner": "hunter2" } })), r#"{"key"}"#);
        assert_eq!(
            (value(json!("hunter2")), value(json!([1])), value(json!(null))),
            ("…".into(), "…".into(), "null".into())
        );
    }
}
