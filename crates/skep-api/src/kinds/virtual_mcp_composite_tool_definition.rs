//! VirtualMCPCompositeToolDefinition: a composite tool that several VirtualMCPServers can serve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::config::vmcp::composite::CompositeTool;
use crate::kind::{Column, Versions, kind};

kind! {
    /// VirtualMCPCompositeToolDefinition describes a tool that is made of calls to other tools. VirtualMCPServers
    /// that name it in spec.config.compositeToolRefs serve it beside the tools of their backends.
    VirtualMCPCompositeToolDefinition(CompositeTool, VirtualMCPCompositeToolDefinitionStatus) {
        plural: "virtualmcpcompositetooldefinitions",
        short_names: &["vmcpctd", "compositetool"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Workflow", ".spec.name"),
            Column::string("Status", ".status.validationStatus"),
            Column::AGE,
            Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        ],
        scale: None,
    }
}

/// Whether the tool makes sense, and who serves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPCompositeToolDefinitionStatus {
    /// What is known about the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The names of the VirtualMCPServers that serve the tool, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub referencing_virtual_servers: Vec<String>,
    /// Everything that is wrong with the tool, each with the member it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub validation_errors: Vec<String>,
    /// Whether the tool makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_status: Option<ValidationStatus>,
}

/// Whether a definition makes sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValidationStatus {
    /// It does.
    Valid,
    /// It does not; VirtualMCPServers refuse it.
    Invalid,
    /// It has not been looked at yet.
    #[default]
    Unknown,
}
