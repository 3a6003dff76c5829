//! Values of rmcp in the words of the protocol, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value of rmcp, from the words of the protocol.
pub(crate) fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A value of rmcp, in the words of the protocol.
pub(crate) fn words(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}
