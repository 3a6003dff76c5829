//! MCPRemoteProxy: an MCP server elsewhere, behind a proxy of ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::audit::Audit;
use super::authz::AuthzConfig;
use super::header_forward::HeaderForward;
use super::overrides::ProxyOverrides;
use super::references::{AuthServerRef, LooseObjectRef, OIDCConfigRef, ObjectRef, TelemetryConfigRef};
use super::resources::ResourceRequirements;
use super::session_storage::{SessionAffinity, SessionStorage};
use super::transport::{self, RemoteTransport};
use crate::conditions::Condition;
use crate::kind::{Column, Versions, kind};
use crate::raw::RawObject;

kind! {
    /// MCPRemoteProxy puts a secured endpoint in the cluster in front of an MCP server that runs elsewhere: clients
    /// sign in here, policies are checked here, and the proxy signs in to the remote server on their behalf.
    MCPRemoteProxy(MCPRemoteProxySpec, MCPRemoteProxyStatus) {
        plural: "mcpremoteproxies",
        short_names: &["rp", "mcprp"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Phase", ".status.phase"),
            Column::string("Remote URL", ".spec.remoteUrl"),
            Column::string("URL", ".status.url"),
            Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column::AGE,
        ],
        scale: None,
    }
}

/// The remote server, and how clients reach it.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
        "message": "authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to reference a shared MCPAuthzConfig",
    },
]))]
pub struct MCPRemoteProxySpec {
    /// Whether the remote server may have an address inside the cluster or another private address.
    #[serde(default)]
    pub allow_private_endpoint: bool,
    /// Whether requests are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The embedded authorization server with which clients sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_server_ref: Option<AuthServerRef>,
    /// Who may call what. Not together with authzConfigRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config: Option<AuthzConfig>,
    /// The MCPAuthzConfig that says who may call what. Not together with authzConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config_ref: Option<ObjectRef>,
    /// A path that is put in front of the endpoint that an SSE stream announces. Set it when an ingress adds a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_prefix: Option<String>,
    /// The MCPExternalAuthConfig with which the proxy signs in to the remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_ref: Option<LooseObjectRef>,
    /// The MCPGroup that this server belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_ref: Option<ObjectRef>,
    /// Headers that are added to requests to the remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_forward: Option<HeaderForward>,
    /// The MCPOIDCConfig with which tokens of clients are checked. Without it, and without another way to sign in,
    /// the endpoint is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config_ref: Option<OIDCConfigRef>,
    /// A pod template that is merged over the one of the proxy's pods. The proxy's container is named `toolhive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<RawObject>,
    /// The port of the proxy and of its Service.
    #[serde(default = "transport::default_port")]
    #[default(transport::DEFAULT_PORT)]
    #[schemars(range(min = 1, max = 65535))]
    pub proxy_port: i32,
    /// The address of the remote server.
    #[schemars(regex(pattern = r"^https?://"))]
    pub remote_url: String,
    /// How many proxies run. Leave it out to let an autoscaler or `kubectl scale` decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Labels, annotations and other additions to the objects created for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_overrides: Option<ProxyOverrides>,
    /// CPU and memory of the proxy's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The ServiceAccount of the proxy. Without it Skep creates one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Whether the Service sends one client to one replica.
    #[serde(default)]
    pub session_affinity: SessionAffinity,
    /// Where sessions are kept. Several replicas need redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_storage: Option<SessionStorage>,
    /// The MCPTelemetryConfig that says where traces and metrics go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry_config_ref: Option<TelemetryConfigRef>,
    /// The MCPToolConfig that filters and renames tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config_ref: Option<LooseObjectRef>,
    /// The transport of the remote server.
    #[serde(default)]
    pub transport: RemoteTransport,
    /// Whether X-Forwarded headers of clients are believed. Only behind a proxy that sets them.
    #[serde(default)]
    pub trust_proxy_headers: bool,
}

/// What became of the proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRemoteProxyStatus {
    /// The hash of the embedded authorization server's configuration that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_server_config_hash: Option<String>,
    /// The hash of the MCPAuthzConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config_hash: Option<String>,
    /// What is known about the proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The hash of the MCPExternalAuthConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_hash: Option<String>,
    /// The address of the endpoint from outside the cluster, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_url: Option<String>,
    /// The phase in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The hash of the MCPOIDCConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config_hash: Option<String>,
    /// The life of the proxy in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MCPRemoteProxyPhase>,
    /// The hash of the MCPTelemetryConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry_config_hash: Option<String>,
    /// The hash of the MCPToolConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config_hash: Option<String>,
    /// The address of the endpoint inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The life of a proxy in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MCPRemoteProxyPhase {
    /// The proxy is not up yet.
    #[default]
    Pending,
    /// The proxy is up.
    Ready,
    /// The proxy cannot be run; the conditions say why.
    Failed,
    /// The object is being deleted.
    Terminating,
}
