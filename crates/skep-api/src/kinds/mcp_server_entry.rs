//! MCPServerEntry: a remote MCP server that a group lists without a proxy of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ca_bundle::CABundleRef;
use super::header_forward::HeaderForward;
use super::references::{LooseObjectRef, ObjectRef};
use super::transport::RemoteTransport;
use crate::conditions::Condition;
use crate::kind::{Column, Versions, kind};

kind! {
    /// MCPServerEntry adds a remote MCP server to an MCPGroup, so that a VirtualMCPServer can serve it together with
    /// the rest of the group. Nothing is created for it, and its address is checked but not called.
    MCPServerEntry(MCPServerEntrySpec, MCPServerEntryStatus) {
        plural: "mcpserverentries",
        short_names: &["mcpentry"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Phase", ".status.phase"),
            Column::string("Transport", ".spec.transport"),
            Column::string("Remote URL", ".spec.remoteUrl"),
            Column::string("Group", ".spec.groupRef.name"),
            Column::AGE,
        ],
        scale: None,
    }
}

/// The remote server, and how it is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerEntrySpec {
    /// Whether the remote server may have an address inside the cluster or another private address.
    #[serde(default)]
    pub allow_private_endpoint: bool,
    /// The authorities that are trusted, beside the system's, when the remote server shows its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<CABundleRef>,
    /// The MCPExternalAuthConfig with which requests are signed in to the remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_ref: Option<LooseObjectRef>,
    /// The MCPGroup that this server belongs to.
    pub group_ref: ObjectRef,
    /// Headers that are added to requests to the remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_forward: Option<HeaderForward>,
    /// The address of the remote server.
    #[schemars(regex(pattern = r"^https?://"))]
    pub remote_url: String,
    /// The transport of the remote server.
    pub transport: RemoteTransport,
}

/// Whether the entry can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerEntryStatus {
    /// What is known about the entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the entry and everything it refers to is in order.
    #[serde(default)]
    pub phase: MCPServerEntryPhase,
}

/// The life of an entry in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MCPServerEntryPhase {
    /// The entry and everything it refers to is in order.
    Valid,
    /// The entry has not been checked yet.
    #[default]
    Pending,
    /// Something is missing or wrong; the conditions say what.
    Failed,
}
