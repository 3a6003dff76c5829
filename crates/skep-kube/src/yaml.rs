//! Bodies and answers in YAML.

use serde_json::Value;

/// Reads one YAML document as the JSON value that it stands for.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// Writes a JSON value as one YAML document.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| error.to_string())
}
