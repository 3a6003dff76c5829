//! Certificates of authorities that are trusted beside the system's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a bundle of CA certificates is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CABundleRef {
    /// A key of a ConfigMap that holds the certificates in PEM form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeySelector>,
}

/// A key of a ConfigMap in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapKeySelector {
    /// The key within the ConfigMap's data.
    pub key: String,
    /// The name of the ConfigMap.
    #[serde(default)]
    pub name: String,
    /// Whether the ConfigMap or its key may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}
