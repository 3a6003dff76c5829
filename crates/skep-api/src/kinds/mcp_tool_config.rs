//! MCPToolConfig: which tools clients see, and how.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use super::tool_override::ToolOverride;
use crate::kind::{Column, Versions, kind};

kind! {
    /// MCPToolConfig says which tools of a server clients see, and under which names and descriptions. Workloads name
    /// it in their toolConfigRef.
    MCPToolConfig(MCPToolConfigSpec, ConfigStatus) {
        plural: "mcptoolconfigs",
        short_names: &["tc", "toolconfig"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[VALID_COLUMN, REFERENCES_COLUMN, Column::AGE],
        scale: None,
    }
}

/// Which tools clients see, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPToolConfigSpec {
    /// The tools that clients may see and call. An empty list lets all of them through. A tool that toolsOverride
    /// renames goes by its new name here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tools_filter: Vec<String>,
    /// What clients see of a tool instead of what its server says. The keys are the server's names of the tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools_override: BTreeMap<String, ToolOverride>,
}
