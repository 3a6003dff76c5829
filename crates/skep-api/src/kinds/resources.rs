//! CPU and memory of a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a container may use and what is set aside for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirements {
    /// What the container may use at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
    /// What the scheduler sets aside for the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceList>,
}

/// Amounts in Kubernetes quantity notation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceList {
    /// Processor time, for example `500m` for half a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory, for example `128Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}
