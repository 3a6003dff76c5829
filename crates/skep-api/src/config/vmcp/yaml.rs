//! The configuration as a YAML file.
//!
//! Equal configurations give equal bytes: members and map keys are sorted, what is absent is left out.

use serde_json::{Map, Value, json};

use super::VmcpConfig;
use crate::schema;

/// Why a configuration cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum VmcpYamlError {
    #[error("configuration cannot be written as YAML: {0}")]
    Write(#[from] serde_saphyr::SerializeError),
    #[error("configuration cannot be represented: {0}")]
    Represent(#[from] serde_json::Error),
    #[error("configuration is not valid: {0}")]
    Read(Box<serde_saphyr::DeserializeError>),
}

impl From<serde_saphyr::DeserializeError> for VmcpYamlError {
    fn from(error: serde_saphyr::DeserializeError) -> Self {
        Self::Read(Box::new(error))
    }
}

impl VmcpConfig {
    /// The document as the data plane reads it.
    pub fn to_yaml(&self) -> Result<String, VmcpYamlError> {
        let mut document = serde_json::to_value(self)?;
        if let Some(limits) = document.get_mut("rateLimiting").and_then(Value::as_object_mut) {
            nest_refill_periods(limits);
        }
        document.sort_all_objects();
        // Folding at 80 columns makes long values hard to compare and to grep.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        Ok(serde_saphyr::to_string_with_options(&document, options)?)
    }

    /// Reads a document. Members that nobody knows are no error here: those at the top are kept, those further down
    /// are dropped. A strict reader asks [`VmcpConfig::unknown_members_of_yaml`] as well.
    pub fn from_yaml(text: &str) -> Result<Self, VmcpYamlError> {
        Ok(serde_saphyr::from_str(text)?)
    }

    /// The members at the top of the document that nobody knows.
    pub fn unknown_members(&self) -> Vec<String> {
        self.other.keys().cloned().collect()
    }

    /// The members of a YAML document that nobody knows, at any depth, as paths such as
    /// `aggregation.tools[0].fliter`.
    pub fn unknown_members_of_yaml(text: &str) -> Result<Vec<String>, VmcpYamlError> {
        let document: Value = serde_saphyr::from_str(text)?;
        let mut unknown = Vec::new();
        let mut schema = schema::of::<Self>();
        if let Some(root) = schema.as_object_mut() {
            // The API keeps unknown members of spec.config; a file should have none.
            root.remove(PRESERVE_UNKNOWN);
        }
        collect_unknown(&document, &schema, "", &mut unknown);
        Ok(unknown)
    }
}

const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// In the file a period is `{duration: 1m0s}`, in the API it is `1m0s`.
fn nest_refill_periods(limits: &mut Map<String, Value>) {
    nest_in_buckets(limits);
    if let Some(Value::Array(tools)) = limits.get_mut("tools") {
        tools.iter_mut().filter_map(Value::as_object_mut).for_each(nest_in_buckets);
    }
}

fn nest_in_buckets(limits: &mut Map<String, Value>) {
    for bucket in ["perUser", "shared"] {
        if let Some(period) = limits.get_mut(bucket).and_then(|bucket| bucket.get_mut("refillPeriod")) {
            *period = json!({ "duration": period.take() });
        }
    }
}

fn collect_unknown(value: &Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if schema[PRESERVE_UNKNOWN] == true || schema["type"] != "object" {
                return;
            }
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
                    Some(schema) => collect_unknown(member, schema, &path, unknown),
                    None => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_unknown(item, &schema["items"], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
