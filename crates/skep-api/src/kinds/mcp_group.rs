//! MCPGroup: a name under which servers are gathered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::kind::{Column, Versions, kind};

kind! {
    /// MCPGroup gathers MCP servers, so that a VirtualMCPServer can serve all of them at one address. Members name
    /// their group in spec.groupRef; the group itself only counts them.
    MCPGroup(MCPGroupSpec, MCPGroupStatus) {
        plural: "mcpgroups",
        short_names: &["mcpg", "mcpgroup"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::integer("Servers", ".status.serverCount"),
            Column::integer("Proxies", ".status.remoteProxyCount"),
            Column::string("Phase", ".status.phase"),
            Column::string("Checked", ".status.conditions[?(@.type=='MCPServersChecked')].status"),
            Column::AGE,
        ],
        scale: None,
    }
}

/// What the group is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPGroupSpec {
    /// What the group is for, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Who is in the group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPGroupStatus {
    /// What is known about the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The names of the MCPServerEntries in the group, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub entries: Vec<String>,
    /// How many MCPServerEntries are in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_count: Option<i32>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the members could be counted.
    #[serde(default)]
    pub phase: MCPGroupPhase,
    /// The names of the MCPRemoteProxies in the group, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub remote_proxies: Vec<String>,
    /// How many MCPRemoteProxies are in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_proxy_count: Option<i32>,
    /// How many MCPServers are in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_count: Option<i32>,
    /// The names of the MCPServers in the group, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub servers: Vec<String>,
}

/// The life of a group in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MCPGroupPhase {
    /// The members are counted.
    Ready,
    /// The members have not been counted yet.
    #[default]
    Pending,
    /// The members could not be counted; the conditions say why.
    Failed,
}
