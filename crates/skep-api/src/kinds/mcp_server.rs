//! MCPServer: an MCP server that runs in the cluster, behind a proxy of ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::audit::Audit;
use super::authz::AuthzConfig;
use super::overrides::{EnvVar, ProxyOverrides};
use super::rate_limit::RateLimiting;
use super::references::{AuthServerRef, LooseObjectRef, OIDCConfigRef, ObjectRef, TelemetryConfigRef};
use super::resources::ResourceRequirements;
use super::session_storage::{SessionAffinity, SessionStorage};
use super::transport::{self, ProxyMode, ServerTransport};
use crate::conditions::Condition;
use crate::kind::{Column, Scale, Versions, kind};
use crate::raw::RawObject;

kind! {
    /// MCPServer runs an MCP server from a container image and puts a secured endpoint in front of it: clients sign
    /// in at the proxy, policies are checked there, and servers that only speak over stdio become reachable over
    /// HTTP.
    MCPServer(MCPServerSpec, MCPServerStatus) {
        plural: "mcpservers",
        short_names: &["mcpserver", "mcpservers"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Status", ".status.phase"),
            Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column::integer("Replicas", ".status.readyReplicas"),
            Column::string("URL", ".status.url"),
            Column::AGE,
        ],
        scale: Some(Scale {
            spec_replicas_path: ".spec.replicas",
            status_replicas_path: ".status.readyReplicas",
            label_selector_path: ".status.selector",
        }),
    }
}

/// The server, and how clients reach it.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.authzConfig) && has(self.authzConfigRef))",
        "message": "authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to reference a shared MCPAuthzConfig",
    },
    {
        "rule": "!has(self.rateLimiting) || (has(self.sessionStorage) && self.sessionStorage.provider == 'redis')",
        "message": "rateLimiting requires sessionStorage with provider 'redis'",
    },
    {
        "rule": "!(has(self.rateLimiting) && has(self.rateLimiting.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",
        "message": "rateLimiting.perUser requires authentication (oidcConfigRef or externalAuthConfigRef)",
    },
    {
        "rule": "!has(self.rateLimiting) || !has(self.rateLimiting.tools) || self.rateLimiting.tools.all(t, !has(t.perUser)) || has(self.oidcConfigRef) || has(self.externalAuthConfigRef)",
        "message": "per-tool perUser rate limiting requires authentication (oidcConfigRef or externalAuthConfigRef)",
    },
]))]
pub struct MCPServerSpec {
    /// Arguments of the MCP server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
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
    /// How many pods of the MCP server run behind the proxies. Leave it out to let an autoscaler or `kubectl scale`
    /// of the StatefulSet decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backend_replicas: Option<i32>,
    /// A path that is put in front of the endpoint that an SSE stream announces. Set it when an ingress adds a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_prefix: Option<String>,
    /// Environment variables of the MCP server. The proxy does not get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// The MCPExternalAuthConfig that says with which credentials requests go on to the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_ref: Option<LooseObjectRef>,
    /// The MCPGroup that this server belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_ref: Option<ObjectRef>,
    /// The container image of the MCP server.
    pub image: String,
    /// The port on which the MCP server listens. Ignored for stdio. Defaults to 8080.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub mcp_port: Option<i32>,
    /// The MCPOIDCConfig with which tokens of clients are checked. Without it, and without another way to sign in,
    /// the endpoint is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config_ref: Option<OIDCConfigRef>,
    /// What the MCP server may reach. In a cluster only the network part of it is enforced, and only while the operator
    /// runs with --enforce-network-profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_profile: Option<PermissionProfile>,
    /// A pod template that is merged over the one of the MCP server's pods. The server's container is named `mcp`.
    /// It does not touch the proxy's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<RawObject>,
    /// The transport that the proxy offers to clients of a stdio server. A server with another transport is offered
    /// with that one, whatever stands here.
    #[serde(default)]
    pub proxy_mode: ProxyMode,
    /// The port of the proxy and of its Service.
    #[serde(default = "transport::default_port")]
    #[default(transport::DEFAULT_PORT)]
    #[schemars(range(min = 1, max = 65535))]
    pub proxy_port: i32,
    /// How many tool calls are let through. Needs sessionStorage with provider redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limiting: Option<RateLimiting>,
    /// How many proxies run; a stdio server never has more than one. Leave it out to let an autoscaler of the
    /// Deployment decide. An autoscaler of the MCPServer itself needs a number here to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Labels, annotations and other additions to the objects created for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_overrides: Option<ProxyOverrides>,
    /// CPU and memory of the proxy's container. Those of the MCP server belong in podTemplateSpec, in the container
    /// `mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Environment variables of the MCP server whose values come from Secrets. A Secret can be listed once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub secrets: Vec<EnvFromSecret>,
    /// The ServiceAccount of the MCP server's pods. Without it Skep creates one. The proxy always has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Whether the proxy's Service sends one client to one replica.
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
    /// The transport that the MCP server speaks.
    #[serde(default)]
    pub transport: ServerTransport,
    /// Whether X-Forwarded headers of clients are believed. Only behind a proxy that sets them.
    #[serde(default)]
    pub trust_proxy_headers: bool,
    /// Paths of the node that are mounted into the proxy's pod. The MCP server does not see them: volumes for it
    /// belong in podTemplateSpec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Vec<HostVolume>,
    /// The MCPWebhookConfig with the webhooks that see requests on their way to the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_config_ref: Option<LooseObjectRef>,
}

/// An environment variable whose value comes from a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvFromSecret {
    /// The key within the Secret's data.
    pub key: String,
    /// The name of the Secret.
    pub name: String,
    /// The name of the variable. Defaults to the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_env_name: Option<String>,
}

/// A path of the node that is mounted into a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostVolume {
    /// The path on the node.
    pub host_path: String,
    /// The path in the container.
    pub mount_path: String,
    /// The name of the volume.
    pub name: String,
    /// Whether the volume cannot be written to.
    #[serde(default)]
    pub read_only: bool,
}

/// A permission profile, by name or in a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfile {
    /// The key of the ConfigMap that holds the profile as JSON. Set it when type is configmap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The name of the profile when type is builtin: `none` for no network at all, or `network` for all of it. The
    /// name of the ConfigMap when type is configmap.
    pub name: String,
    /// Where the profile is found.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-skep-required" = true))]
    pub type_: PermissionProfileSource,
}

/// Places where a permission profile can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PermissionProfileSource {
    /// Among the profiles that Skep brings along.
    #[default]
    Builtin,
    /// In a ConfigMap.
    ConfigMap,
}

/// What became of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPServerStatus {
    /// The hash of the embedded authorization server's configuration that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_server_config_hash: Option<String>,
    /// The hash of the MCPAuthzConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz_config_hash: Option<String>,
    /// What is known about the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The hash of the MCPExternalAuthConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_auth_config_hash: Option<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MCPServerPhase>,
    /// How many proxies are running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The label selector of the proxy's pods, as autoscalers read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The hash of the MCPTelemetryConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry_config_hash: Option<String>,
    /// The hash of the MCPToolConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config_hash: Option<String>,
    /// The address of the endpoint inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The hash of the MCPWebhookConfig that is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_config_hash: Option<String>,
}

/// The life of a server in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MCPServerPhase {
    /// The server is not up yet.
    #[default]
    Pending,
    /// The server is up.
    Ready,
    /// The server cannot be run; the conditions say why.
    Failed,
    /// The object is being deleted.
    Terminating,
    /// The server is scaled to zero.
    Stopped,
}
