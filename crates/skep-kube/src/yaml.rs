//! Bodies in YAML.

use serde_json::Value;

/// Reads one YAML document as the JSON value that it stands for.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}
