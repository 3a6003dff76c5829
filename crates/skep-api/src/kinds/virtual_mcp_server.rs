//! VirtualMCPServer: all servers of a group at one address.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth_server::EmbeddedAuthServer;
use super::authz::AuthzConfig;
use super::references::{ImagePullSecret, LooseObjectRef, OIDCConfigRef, ObjectRef, TelemetryConfigRef};
use super::session_storage::{SessionAffinity, SessionStorage};
use crate::conditions::Condition;
use crate::config::vmcp::VmcpConfig;
use crate::kind::{Column, Scale, Versions, kind};
use crate::raw::RawObject;

kind! {
    /// VirtualMCPServer serves all MCP servers of an MCPGroup at one address, as one MCP server: clients sign in
    /// once, and tools can be filtered, renamed, combined into larger ones and found by search.
    VirtualMCPServer(VirtualMCPServerSpec, VirtualMCPServerStatus) {
        plural: "virtualmcpservers",
        short_names: &["vmcp", "virtualmcp"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Phase", ".status.phase"),
            Column::string("URL", ".status.url"),
            Column::integer("Backends", ".status.backendCount"),
            Column::AGE,
            Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        ],
        scale: Some(Scale {
            spec_replicas_path: ".spec.replicas",
            status_replicas_path: ".status.readyReplicas",
            label_selector_path: ".status.selector",
        }),
    }
}

/// What is served, to whom and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.config) || !has(self.config.rateLimiting) || (has(self.sessionStorage) && self.sessionStorage.provider == 'redis')",
        "message": "config.rateLimiting requires sessionStorage with provider 'redis'",
    },
    {
        "rule": "!(has(self.config) && has(self.config.rateLimiting) && has(self.config.rateLimiting.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "config.rateLimiting.perUser requires incomingAuth.type oidc",
    },
    {
        "rule": "!has(self.config) || !has(self.config.rateLimiting) || !has(self.config.rateLimiting.tools) || self.config.rateLimiting.tools.all(t, !has(t.perUser)) || (has(self.incomingAuth) && self.incomingAuth.type == 'oidc')",
        "message": "per-tool perUser rate limiting requires incomingAuth.type oidc",
    },
    {
        "rule": "!(has(self.embeddingServerRef) && has(self.config) && has(self.config.optimizer) && has(self.config.optimizer.embeddingProvider) && self.config.optimizer.embeddingProvider == 'openai')",
        "message": "embeddingServerRef provisions a managed TEI server and cannot be combined with optimizer.embeddingProvider 'openai'; openai mode uses embeddingService directly",
    },
]))]
pub struct VirtualMCPServerSpec {
    /// An authorization server within this server, with which clients sign in at upstream identity providers. Needs
    /// incomingAuth.type oidc with the same issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_server_config: Option<EmbeddedAuthServer>,
    /// How backends are gathered and served. A member of the spec that says the same takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<VmcpConfig>,
    /// The EmbeddingServer that the optimizer searches with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_server_ref: Option<LooseObjectRef>,
    /// The MCPGroup whose members are served.
    pub group_ref: ObjectRef,
    /// Secrets with which the image of the server is pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Vec<ImagePullSecret>,
    /// How clients sign in and what they may do.
    pub incoming_auth: IncomingAuth,
    /// How the server signs in to its backends. Without it, in the way that each backend brings along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outgoing_auth: Option<OutgoingAuth>,
    /// Headers of client requests that are passed on to every backend unchanged. Unless it is empty it wins over
    /// config.passthroughHeaders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub passthrough_headers: Vec<String>,
    /// A pod template that is merged over the one of the server's pods. The server's container is named `vmcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<RawObject>,
    /// How many servers run. Leave it out to let an autoscaler or `kubectl scale` decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The ServiceAccount of the server. Without it Skep creates one with the rights that the server needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// How the Service can be reached.
    #[serde(default)]
    pub service_type: ServiceType,
    /// Whether the Service sends one client to one replica.
    #[serde(default)]
    pub session_affinity: SessionAffinity,
    /// Where sessions are kept. Several replicas need redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_storage: Option<SessionStorage>,
    /// The MCPTelemetryConfig that says where traces and metrics go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
}

/// How clients sign in and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'oidc' ? has(self.oidcConfigRef) : true",
        "message": "spec.incomingAuth.oidcConfigRef is required when type is oidc",
    },
    {
        "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
        "message": "authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to reference a shared MCPAuthzConfig",
    },
]))]
pub struct IncomingAuth {
    /// Who may call what. Not together with authzConfigRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config: Option<AuthzConfig>,
    /// The MCPAuthzConfig that says who may call what. Not together with authzConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config_ref: Option<ObjectRef>,
    /// The MCPOIDCConfig with which tokens of clients are checked. Required when type is oidc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config_ref: Option<OIDCConfigRef>,
    /// How clients sign in.
    #[serde(rename = "type")]
    pub type_: IncomingAuthType,
}

/// Ways in which clients can sign in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IncomingAuthType {
    /// Anybody may call.
    #[default]
    Anonymous,
    /// With a token of an OpenID Connect issuer.
    Oidc,
}

/// How the server signs in to its backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingAuth {
    /// How the server signs in to single backends, by their names. It wins over what the backend brings along.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backends: BTreeMap<String, BackendAuth>,
    /// How the server signs in to backends that are not listed and bring no way of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<BackendAuth>,
    /// When the backends and the ways to sign in to them are looked up.
    #[serde(default)]
    pub source: OutgoingAuthSource,
}

/// When backends are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutgoingAuthSource {
    /// By the server, all the time: it follows the group as members come and go.
    #[default]
    Discovered,
    /// By the operator: the list is written into the server's configuration, and a change restarts the server.
    Inline,
}

/// How the server signs in to a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendAuth {
    /// The MCPExternalAuthConfig that says how. Needed when type is externalAuthConfigRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_ref: Option<LooseObjectRef>,
    /// Whether the backend itself says how the aggregator signs in to it, or an MCPExternalAuthConfig.
    #[serde(rename = "type")]
    pub type_: BackendAuthType,
}

/// Who says how the server signs in to a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackendAuthType {
    /// The backend itself.
    #[default]
    Discovered,
    /// The MCPExternalAuthConfig that is named here.
    ExternalAuthConfigRef,
}

/// Types of Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// From within the cluster.
    #[default]
    ClusterIP,
    /// Also at a port of every node.
    NodePort,
    /// Also through a load balancer of the cluster's provider.
    LoadBalancer,
}

/// What became of the server. The operator and the server itself write it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPServerStatus {
    /// The hash of the MCPAuthzConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config_hash: Option<String>,
    /// How many backends can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_count: Option<i32>,
    /// What is known about the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The backends that the server found, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub discovered_backends: Vec<DiscoveredBackend>,
    /// The phase in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The hash of the MCPOIDCConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config_hash: Option<String>,
    /// The life of the server in one word.
    #[serde(default)]
    pub phase: VirtualMCPServerPhase,
    /// How many servers are ready, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The label selector of the server's pods, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The hash of the MCPTelemetryConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry_config_hash: Option<String>,
    /// The address of the endpoint inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The life of a server in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VirtualMCPServerPhase {
    /// The server is not up yet.
    #[default]
    Pending,
    /// The server is up, and so are its backends.
    Ready,
    /// The server is up, but some of its backends are not.
    Degraded,
    /// The server cannot be run or reaches no backend; the conditions say why.
    Failed,
}

/// A backend that the server found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredBackend {
    /// The MCPExternalAuthConfig that the backend brings along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_config_ref: Option<String>,
    /// How the server signs in to the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    /// Whether the backend is being spared because it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit_breaker_state: Option<CircuitBreakerState>,
    /// When the circuit breaker last changed its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit_last_changed: Option<Time>,
    /// How many checks in a row have failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub consecutive_failures: Option<i64>,
    /// When the backend was last checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<Time>,
    /// The revision of MCP that the backend speaks. Absent until it has been asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_revision: Option<String>,
    /// The state in words, with the last error if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The name of the backend.
    pub name: String,
    /// The state of the backend: ready, degraded, unavailable, unauthenticated or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The address of the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// States of a circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitBreakerState {
    /// Requests go through.
    #[default]
    Closed,
    /// The backend is spared.
    Open,
    /// The backend is being tried again.
    HalfOpen,
}
