//! What MCPServer and MCPRemoteProxy have in common: a proxy in a pod, its configuration, its Service and its rights.
//!
//! Everything here is a pure function of [`Inputs`]. One function builds each object, and nothing else knows what it
//! looks like: whether an object has to be written is decided by comparing it with what is built.

pub mod build;
pub mod checks;
pub mod gather;
pub mod hashes;
mod inputs;
mod metadata;
mod names;
mod network_policy;
pub mod notes;
mod overrides;
pub mod pod;
mod pod_patch;
mod rbac;
pub mod report;
pub mod resolve;
pub mod run_config;
mod service;
pub mod setbacks;
pub mod status;
pub mod write;

use skep_api::conditions::types;
use skep_api::config::run_config::{AuthzConfig as AuthzDocument, PermissionProfile};
use skep_api::kinds::audit::Audit;
use skep_api::kinds::authz::AuthzConfig;
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxySpec;
use skep_api::kinds::mcp_server::MCPServerSpec;
use skep_api::kinds::overrides::ProxyOverrides;
use skep_api::kinds::references::{AuthServerRef, OIDCConfigRef, TelemetryConfigRef};
use skep_api::kinds::resources::ResourceRequirements;
use skep_api::kinds::session_storage::{SessionAffinity, SessionStorage};
use skep_api::kinds::transport::{DEFAULT_PORT, ProxyMode, RemoteTransport, ServerTransport};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_api::names::{mcp_remote_proxy, mcp_server};

use crate::cluster::OwnKind;
use crate::settings::ProxySettings;

use self::status::WorkloadStatus;

pub use names::{check_names, check_volumes};
pub use network_policy::network_policy;
pub use pod_patch::pod_patch;
pub use rbac::{role, role_binding, service_accounts};
pub use service::service;

/// A workload that has a proxy.
pub trait Proxied: OwnKind<Status: WorkloadStatus> {
    /// Conditions that only this kind has.
    const CONDITIONS: &'static [&'static str];

    /// What the kind shares with the other one.
    fn common(&self) -> Common<'_>;
    /// What only this kind has.
    fn target(&self) -> Target<'_>;
    /// Where clients inside the cluster reach the proxy.
    fn url(&self) -> String;
}

/// The members of a spec that both kinds have, and who they belong to.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub generation: i64,
    pub audit: Option<&'a Audit>,
    pub auth_server_ref: Option<&'a AuthServerRef>,
    pub authz_config: Option<&'a AuthzConfig>,
    pub authz_config_ref: Option<&'a str>,
    pub endpoint_prefix: Option<&'a str>,
    pub external_auth_config_ref: Option<&'a str>,
    pub group_ref: Option<&'a str>,
    pub oidc_config_ref: Option<&'a OIDCConfigRef>,
    pub proxy_port: i32,
    pub replicas: Option<i32>,
    pub resource_overrides: Option<&'a ProxyOverrides>,
    pub resources: Option<&'a ResourceRequirements>,
    pub session_affinity: SessionAffinity,
    pub session_storage: Option<&'a SessionStorage>,
    pub telemetry_config_ref: Option<&'a TelemetryConfigRef>,
    pub tool_config_ref: Option<&'a str>,
    pub trust_proxy_headers: bool,
}

/// What is behind the proxy.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A server of our own.
    Server(&'a MCPServerSpec),
    /// A server somewhere else.
    Remote(&'a MCPRemoteProxySpec),
}

/// The objects that a workload names, as they are. Each of them exists and is valid.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub authz: Option<MCPAuthzConfig>,
    /// The document in the ConfigMap that `spec.authzConfig` names.
    pub authz_document: Option<AuthzDocument>,
    /// The object of `spec.authServerRef`.
    pub auth_server: Option<MCPExternalAuthConfig>,
    /// The object of `spec.externalAuthConfigRef`.
    pub external_auth: Option<MCPExternalAuthConfig>,
    pub oidc: Option<MCPOIDCConfig>,
    /// Whether the Secret and key of the OIDC client exist.
    pub oidc_client_secret: bool,
    /// The profile in the ConfigMap that `spec.permissionProfile` names, where profiles are enforced.
    pub permission_profile: Option<PermissionProfile>,
    pub telemetry: Option<MCPTelemetryConfig>,
    pub tools: Option<MCPToolConfig>,
    pub webhooks: Option<MCPWebhookConfig>,
}

/// Everything that the objects of a workload are built from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub common: Common<'a>,
    pub target: Target<'a>,
    pub resolved: &'a Resolved,
    pub settings: &'a ProxySettings,
}

macro_rules! common {
    ($object:expr) => {{
        let (metadata, spec) = (&$object.metadata, &$object.spec);
        Common {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            name: metadata.name.as_deref().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            audit: spec.audit.as_ref(),
            auth_server_ref: spec.auth_server_ref.as_ref(),
            authz_config: spec.authz_config.as_ref(),
            authz_config_ref: spec.authz_config_ref.as_ref().map(|found| found.name.as_str()),
            endpoint_prefix: spec.endpoint_prefix.as_deref(),
            external_auth_config_ref: spec.external_auth_config_ref.as_ref().map(|found| found.name.as_str()),
            group_ref: spec.group_ref.as_ref().map(|found| found.name.as_str()),
            oidc_config_ref: spec.oidc_config_ref.as_ref(),
            proxy_port: if spec.proxy_port > 0 { spec.proxy_port } else { DEFAULT_PORT },
            replicas: spec.replicas,
            resource_overrides: spec.resource_overrides.as_ref(),
            resources: spec.resources.as_ref(),
            session_affinity: spec.session_affinity,
            session_storage: spec.session_storage.as_ref(),
            telemetry_config_ref: spec.telemetry_config_ref.as_ref(),
            tool_config_ref: spec.tool_config_ref.as_ref().map(|found| found.name.as_str()),
            trust_proxy_headers: spec.trust_proxy_headers,
        }
    }};
}

impl Proxied for MCPServer {
    const CONDITIONS: &'static [&'static str] = &[
        types::STDIO_REPLICA_CAPPED,
        types::RATE_LIMIT_CONFIG_VALID,
        types::VERIFIED,
        types::WEBHOOK_CONFIG_VALIDATED,
    ];

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn target(&self) -> Target<'_> {
        Target::Server(&self.spec)
    }

    fn url(&self) -> String {
        let transport = match (self.spec.transport, self.spec.proxy_mode) {
            (ServerTransport::Sse, _) | (ServerTransport::Stdio, ProxyMode::Sse) => RemoteTransport::Sse,
            (ServerTransport::StreamableHttp, _) | (ServerTransport::Stdio, ProxyMode::StreamableHttp) => {
                RemoteTransport::StreamableHttp
            }
        };
        let common = self.common();
        mcp_server::url(common.name, common.namespace, common.proxy_port, transport)
    }
}

impl Proxied for MCPRemoteProxy {
    const CONDITIONS: &'static [&'static str] =
        &[types::CONFIGURATION_VALID, types::AUTH_CONFIGURED, types::TOOL_CONFIG_VALIDATED];

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn target(&self) -> Target<'_> {
        Target::Remote(&self.spec)
    }

    fn url(&self) -> String {
        let common = self.common();
        mcp_remote_proxy::url(common.name, common.namespace, common.proxy_port)
    }
}
