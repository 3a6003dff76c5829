//! Custom resource definitions that scenarios build on.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::{LoadError, read};

/// A definition to install: a file of `conformance/kube/definitions`, with another schema if need be.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Definition {
    /// The file as it is.
    File(String),
    /// The file with this schema for `spec` in its first version.
    Variant { base: String, spec: Value },
}

impl Definition {
    /// The definition, not yet filled in.
    pub(super) fn template(&self) -> Result<Value, LoadError> {
        let (Self::File(base) | Self::Variant { base, .. }) = self;
        let path = super::folder().join("definitions").join(format!("{base}.yaml"));
        let mut template: Value = serde_saphyr::from_str(&read(&path)?)
            .map_err(|error| LoadError::Parse { path, message: error.to_string() })?;
        if let Self::Variant { spec, .. } = self {
            template["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec.clone();
        }
        Ok(template)
    }
}

/// The collections that a definition gives rise to, one for each served version.
pub(super) fn collections(definition: &Value) -> Vec<String> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let served = |version: &&Value| version["served"] == json!(true);
    let versions = spec["versions"].as_array().into_iter().flatten().filter(served);
    versions.map(|version| format!("/apis/{group}/{}/{plural}", text(&version["name"]))).collect()
}
