//! The configuration as a YAML file.
//!
//! Equal configurations give equal bytes: members and map keys are sorted, what is absent is left out, durations are
//! written the way Go prints them.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::VmcpConfig;
use crate::{duration, schema};

const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// What a file may contain. Unlike `spec.config`, which the API keeps whole, a file has no members of its own.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schema::of::<VmcpConfig>();
    if let Some(root) = schema.as_object_mut() {
        root.remove(PRESERVE_UNKNOWN);
    }
    schema
});

/// Why a configuration cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum VmcpYamlError {
    #[error("vMCP configuration cannot be written: {0}")]
    Write(String),
    #[error("vMCP configuration cannot be read: {0}")]
    Read(String),
}

impl VmcpConfig {
    /// The document as the data plane reads it.
    pub fn to_yaml(&self) -> Result<String, VmcpYamlError> {
        let mut document = serde_json::to_value(self).map_err(|error| VmcpYamlError::Write(error.to_string()))?;
        normalise_durations(&mut document, &SCHEMA);
        if let Some(limits) = document.get_mut("rateLimiting").and_then(Value::as_object_mut) {
            nest_refill_periods(limits);
        }
        document.sort_all_objects();
        // Folding at 80 columns makes long values hard to compare and to grep.
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        serde_saphyr::to_string_with_options(&document, options)
            .map_err(|error| VmcpYamlError::Write(error.to_string()))
    }

    /// Reads a document. Members that nobody knows are no error here, they are kept. A strict reader asks
    /// [`VmcpConfig::unknown_members_of_yaml`] as well.
    pub fn from_yaml(text: &str) -> Result<Self, VmcpYamlError> {
        read(text)
    }

    /// The members of the document that nobody knows, at any depth, as paths such as `aggregation.tools[0].fliter`.
    pub fn unknown_members(&self) -> Result<Vec<String>, VmcpYamlError> {
        let document = serde_json::to_value(self).map_err(|error| VmcpYamlError::Write(error.to_string()))?;
        Ok(unknown_members_of(&document))
    }

    /// The same for a YAML document, whether or not it can be read as a configuration.
    pub fn unknown_members_of_yaml(text: &str) -> Result<Vec<String>, VmcpYamlError> {
        Ok(unknown_members_of(&read(text)?))
    }
}

fn unknown_members_of(document: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    collect_unknown(document, &SCHEMA, "", &mut unknown);
    unknown.sort_unstable();
    unknown
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, VmcpYamlError> {
    // A snippet would carry the lines around the mistake into logs, secrets included.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| VmcpYamlError::Read(error.to_string()))
}

/// Every text that the schema calls a duration is written the way Go prints it, as the reference does. What is no
/// duration is left for the reader to refuse.
fn normalise_durations(value: &mut Value, schema: &Value) {
    match value {
        Value::String(text) if schema["pattern"] == duration::PATTERN => {
            if let Ok(parsed) = duration::parse(text) {
                *text = duration::format(parsed);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(schema) = member_schema(schema, name) {
                    normalise_durations(member, schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalise_durations(item, &schema["items"])),
        _ => {}
    }
}

/// The member that holds a period in the file: `{duration: 1m0s}`. In the API it is `1m0s`.
const DURATION: &str = "duration";

fn nest_refill_periods(limits: &mut Map<String, Value>) {
    nest_in_buckets(limits);
    if let Some(Value::Array(tools)) = limits.get_mut("tools") {
        tools.iter_mut().filter_map(Value::as_object_mut).for_each(nest_in_buckets);
    }
}

fn nest_in_buckets(limits: &mut Map<String, Value>) {
    for bucket in ["perUser", "shared"] {
        let Some(period) = limits.get_mut(bucket).and_then(|bucket| bucket.get_mut("refillPeriod")) else {
            continue;
        };
        if !period.is_object() {
            *period = json!({ DURATION: period.take() });
        }
        if let Ok(parsed) = duration::parse(period[DURATION].as_str().unwrap_or_default()) {
            period[DURATION] = duration::format(parsed).into();
        }
    }
}

fn collect_unknown(value: &Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        // What is raw has no members to know.
        Value::Object(_) if schema[PRESERVE_UNKNOWN] == true => {}
        // A period, which is a text in the schema.
        Value::Object(members) if schema["type"] == "string" => {
            unknown.extend(members.keys().filter(|name| *name != DURATION).map(|name| format!("{path}.{name}")));
        }
        Value::Object(members) if schema["type"] == "object" => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match member_schema(schema, name) {
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

fn member_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema["properties"].get(name).or_else(|| schema.get("additionalProperties"))
}
