//! The status that all six config kinds have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::kind::Column;

/// Whether the configuration makes sense, and who uses it. Written by the kind's own controller and by nobody else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// What is known about the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// A fingerprint of the spec. Workloads take up a change when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many workloads use this configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub reference_count: Option<i32>,
    /// The workloads that use this configuration, sorted. For information: it follows the workloads with a short
    /// delay, and deletion protection asks anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "name"]))]
    pub referencing_workloads: Vec<WorkloadReference>,
}

/// A workload in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// The kind of the workload.
    pub kind: WorkloadKind,
    /// The name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Kinds that can refer to a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    MCPRemoteProxy,
    MCPServer,
    MCPServerEntry,
    VirtualMCPServer,
}

/// Whether the configuration makes sense.
pub(super) const VALID_COLUMN: Column = Column::string("Valid", ".status.conditions[?(@.type=='Valid')].status");
/// How many workloads use it.
pub(super) const REFERENCES_COLUMN: Column = Column::integer("Refs", ".status.referenceCount");
