//! What a server answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answers to one scenario, in the order of its steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    pub scenario: String,
    pub exchanges: Vec<Exchange>,
}

impl Recording {
    /// What came of a step, counted from 1.
    pub fn exchange(&self, step: usize) -> Option<&Exchange> {
        self.exchanges.iter().find(|exchange| exchange.step == step)
    }
}

/// One step and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Counted from 1.
    pub step: usize,
    /// The request as the scenario writes it.
    pub request: String,
    pub status: u16,
    /// Only headers that say something about the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The events for a watch.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

/// The headers that are recorded. The rest is about the connection, or differs from request to request.
const RECORDED_HEADERS: [&str; 5] = ["allow", "content-type", "location", "retry-after", "warning"];

/// The headers of an answer that are worth recording; several of one name are joined by line breaks. That an answer is
/// JSON goes without saying.
pub(super) fn recorded_headers(headers: &http::HeaderMap) -> BTreeMap<String, String> {
    let texts = |name: &&str| {
        let values: Vec<_> =
            headers.get_all(*name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        values.join("\n")
    };
    RECORDED_HEADERS
        .iter()
        .map(|name| ((*name).to_owned(), texts(name)))
        .filter(|(_, value)| !value.is_empty() && value != "application/json")
        .collect()
}

/// The body of an answer as a value: JSON where it says so or looks like it (the index of OpenAPI documents calls
/// itself plain text), text otherwise.
pub(super) fn body_value(headers: &http::HeaderMap, bytes: &[u8]) -> Value {
    let content_type = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if bytes.is_empty() {
        return Value::Null;
    }
    let text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
    if content_type.contains("json") || bytes.starts_with(b"{") {
        serde_json::from_slice(bytes).unwrap_or_else(|_| text())
    } else {
        text()
    }
}
