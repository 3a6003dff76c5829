//! The configuration of a vMCP process: the file `config.yaml` and, letter for letter, `spec.config` of a
//! VirtualMCPServer.
//!
//! In this document absence means something: the operator fills some defaults itself and leaves others to the
//! runtime. A member with a default in the schema is therefore an `Option` here, and its default a constant next
//! to it.
//!
//! Nothing is lost on the way through these types: every object, at every depth, keeps the members that it does not
//! know in `other`. Whoever wants none of them asks [`VmcpConfig::unknown_members`]. `null` in place of a list or a
//! map is the same as nothing.

pub mod aggregation;
pub mod audit;
pub mod backend;
pub mod code_mode;
pub mod composite;
pub mod incoming_auth;
pub mod operational;
pub mod optimizer;
pub mod outgoing_auth;
pub mod outgoing_strategies;
pub mod session_storage;
pub mod telemetry;
#[cfg(test)]
mod tests;
pub mod yaml;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::aggregation::Aggregation;
use self::audit::AuditSettings;
use self::backend::StaticBackend;
use self::code_mode::CodeMode;
use self::composite::CompositeTool;
use self::incoming_auth::IncomingAuthSettings;
use self::operational::Operational;
use self::optimizer::Optimizer;
use self::outgoing_auth::OutgoingAuthSettings;
use self::session_storage::SessionStorageSettings;
use self::telemetry::TelemetrySettings;
use crate::config::document::null_is_empty;
use crate::kinds::rate_limit::RateLimiting;
use crate::kinds::references::LooseObjectRef;
use crate::raw::RawObject;

/// How a vMCP process gathers its backends and serves them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct VmcpConfig {
    /// How the tools, resources and prompts of all backends become one list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<Aggregation>,
    /// Whether and how requests are recorded. Without it nothing is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditSettings>,
    /// The backends, when they are fixed in advance. The operator writes this list when outgoingAuth.source is
    /// inline; otherwise backends are found while the server runs.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<StaticBackend>,
    /// A tool with which clients run scripts that call several tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_mode: Option<CodeMode>,
    /// VirtualMCPCompositeToolDefinitions in the same namespace whose tools are served as well.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub composite_tool_refs: Vec<LooseObjectRef>,
    /// Tools that are made of calls to other tools.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub composite_tools: Vec<CompositeTool>,
    /// The name of the MCPGroup whose members are the backends. In a VirtualMCPServer spec.groupRef replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_ref: Option<String>,
    /// How clients sign in. In a VirtualMCPServer spec.incomingAuth replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incoming_auth: Option<IncomingAuthSettings>,
    /// Free-form labels that are kept with the configuration.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The name of the server. In a VirtualMCPServer the name of the object replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Timeouts, health checks and what happens when a backend fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operational: Option<Operational>,
    /// Search in place of a long list: clients see two tools, one that finds tools and one that calls them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Optimizer>,
    /// How the server signs in to its backends. In a VirtualMCPServer spec.outgoingAuth replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outgoing_auth: Option<OutgoingAuthSettings>,
    /// Headers of client requests that are passed on to every backend unchanged. In a VirtualMCPServer
    /// spec.passthroughHeaders wins unless it is empty. Headers that govern the connection, Authorization and
    /// Cookie cannot be listed.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub passthrough_headers: Vec<String>,
    /// How many tool calls are let through. Needs a redis session storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limiting: Option<RateLimiting>,
    /// Where sessions are kept. In a VirtualMCPServer spec.sessionStorage replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_storage: Option<SessionStorageSettings>,
    /// Where traces and metrics go. In a VirtualMCPServer spec.telemetryConfigRef replaces it, also when there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetrySettings>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
