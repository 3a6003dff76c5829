//! A backend that is known before the server starts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::kinds::transport::RemoteTransport;
use crate::raw::RawObject;

/// A backend that is known before the server starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticBackend {
    /// The file of CA certificates that the backend's certificate is checked with. Only when type is entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_path: Option<String>,
    /// Free-form labels of the backend. The key `group` is always set to the name of the group.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The name of the backend.
    pub name: String,
    /// How the backend speaks MCP.
    pub transport: RemoteTransport,
    /// What kind of backend it is. Empty for a server or proxy in the cluster, entry for one elsewhere.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<BackendType>,
    /// The address of the backend.
    #[schemars(regex(pattern = r"^https?://"))]
    pub url: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// Kinds of backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    // Undocumented in the schema: its wire name is the empty string. An MCPServer or MCPRemoteProxy.
    #[default]
    #[serde(rename = "")]
    Workload,
    /// An MCPServerEntry: a server elsewhere, spoken to without a proxy in between.
    Entry,
}
