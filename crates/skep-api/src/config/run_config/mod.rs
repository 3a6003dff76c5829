//! The RunConfig: the document that tells a proxy what to run. The operator writes it to a ConfigMap, the proxy reads
//! it at start.
//!
//! Reading and writing lose nothing: members that are not described here survive at every level. What a value means,
//! and whether the proxy can start with it, is decided elsewhere.

mod audit;
mod auth_server_storage;
mod auth_server_upstream;
mod authz;
mod aws_sts;
mod embedded_auth_server;
mod header_forward;
pub mod middleware;
mod oidc;
mod permission_profile;
mod rate_limit;
mod remote_auth;
mod scaling;
mod telemetry;
#[cfg(test)]
mod tests;
mod token_exchange;
mod tools;
mod upstream_swap;
mod webhook;

use std::collections::BTreeMap;

use super::document::{Misfit, object, read, word};
use crate::duration::DurationText;
use crate::raw::RawValue;
use crate::sensitive::Sensitive;

pub use audit::AuditConfig;
pub use auth_server_storage::{AuthServerRedis, AuthServerStorage, RedisAclUser, RedisSentinel, RedisTls, StorageType};
pub use auth_server_upstream::{
    AuthServerUpstream, DcrConfig, IdentityFromToken, OAuth2Upstream, OidcUpstream, TokenResponseMapping, UpstreamType,
    UserinfoConfig, UserinfoFields,
};
pub use authz::{AuthzConfig, AuthzType, CedarOptions, ClaimMapping, HttpPdpOptions, PdpContext, PdpEndpoint};
pub use aws_sts::{AwsStsConfig, RoleMapping};
pub use embedded_auth_server::{
    CimdConfig, DelegateClient, EmbeddedAuthServerConfig, JwtBearerGrant, SigningKeyConfig, SubjectBinding,
    TokenLifespans, TrustedIssuer,
};
pub use header_forward::HeaderForwardConfig;
pub use middleware::{MiddlewareConfig, MiddlewareType};
pub use oidc::OidcConfig;
pub use permission_profile::{InboundPermissions, NetworkPermissions, OutboundPermissions, PermissionProfile};
pub use rate_limit::{RateLimitConfig, TokenBucket, ToolRateLimit};
pub use remote_auth::{RemoteAuthConfig, TimeText};
pub use scaling::{ScalingConfig, SessionRedis};
pub use telemetry::TelemetryConfig;
pub use token_exchange::{HeaderStrategy, TokenExchangeConfig};
pub use tools::{ToolAnnotations, ToolOverride};
pub use upstream_swap::UpstreamSwapConfig;
pub use webhook::{FailurePolicy, WebhookConfig, WebhookTimeout, WebhookTls};

object! {
    /// What a proxy runs and how.
    pub struct RunConfig {
        /// Steps from elsewhere that a generated chain gets before its last one.
        omit additional_middleware_configs: Vec<MiddlewareConfig>,
        /// Without effect on Kubernetes.
        omit allow_docker_gateway: bool,
        /// Whether the remote server may be at an address that is not for everybody. An addition: without it, it may not.
        omit allow_private_endpoint: bool,
        /// The origins that browsers may call from.
        omit allowed_origins: Vec<String>,
        omit audit_config: Option<AuditConfig>,
        /// Counts only together with `audit_config`.
        omit audit_config_path: String,
        omit authz_config: Option<AuthzConfig>,
        /// Counts only together with `authz_config`.
        omit authz_config_path: String,
        omit aws_sts_config: Option<AwsStsConfig>,
        /// Empty means the name.
        omit base_name: String,
        /// The arguments of the backend's container.
        omit cmd_args: Vec<String>,
        omit container_labels: BTreeMap<String, String>,
        /// The name of the StatefulSet; empty means the name.
        omit container_name: String,
        omit debug: bool,
        omit embedded_auth_server_config: Option<EmbeddedAuthServerConfig>,
        /// A prefix for the message endpoint that an SSE server announces.
        omit endpoint_prefix: String,
        /// A directory of files with further environment variables for the backend.
        omit env_file_dir: String,
        /// The environment of the backend's container.
        omit env_vars: BTreeMap<String, Sensitive>,
        /// Carried for other tools.
        omit group: String,
        omit header_forward: Option<HeaderForwardConfig>,
        /// The address to listen on.
        always host: String,
        /// Without effect on Kubernetes.
        omit ignore_config: Option<IgnoreConfig>,
        /// The image of the backend; empty for a remote server.
        always image: String,
        /// Without effect on Kubernetes.
        omit isolate_network: bool,
        /// A copy of `oidc_config.AuthTokenFile`.
        omit jwks_auth_token_file: String,
        /// A patch of the backend's pod template, as JSON in a text.
        omit k8s_pod_template_patch: Sensitive,
        /// The generation of the MCPServer; 0 means none.
        omit mcpserver_generation: i64,
        /// The chain, outermost first. When it is empty one is generated from the rest of the document.
        omit middleware_configs: Vec<MiddlewareConfig>,
        omit mutating_webhooks: Vec<WebhookConfig>,
        /// The name of the server in metrics, policies and keys.
        always name: String,
        omit oidc_config: Option<OidcConfig>,
        /// Null means the builtin profile `network`.
        always permission_profile: Option<PermissionProfile>,
        /// Where `permission_profile` came from.
        omit permission_profile_name_or_path: String,
        /// The port to listen on.
        always port: i32,
        omit proxy_mode: ProxyMode,
        /// Further ports of the Service: `host:container` or `container`.
        omit publish: Vec<String>,
        omit rate_limit_config: Option<RateLimitConfig>,
        /// The namespace in the keys of the rate limiter.
        omit rate_limit_namespace: String,
        /// Carried for other tools.
        omit registry_api_url: String,
        /// Carried for other tools.
        omit registry_server_name: String,
        /// Carried for other tools.
        omit registry_url: String,
        omit remote_auth_config: Option<RemoteAuthConfig>,
        /// The remote server; empty means that there is a backend of our own.
        omit remote_url: String,
        /// How an image was built; carried for other tools.
        omit runtime_config: RawValue,
        omit scaling_config: Option<ScalingConfig>,
        always schema_version: String,
        /// Secrets for the backend's environment: `name,target=VARIABLE`.
        omit secrets: Vec<String>,
        /// How long an idle session lives; unset and 0 mean 2 hours.
        omit session_ttl: DurationText,
        omit stateless: bool,
        /// Whether an unknown protocol version in a header is refused.
        omit strict_protocol_validation: bool,
        /// The host of the backend when there is no Service for it.
        omit target_host: String,
        /// The port of the backend.
        omit target_port: i32,
        omit telemetry_config: Option<TelemetryConfig>,
        /// A copy of `oidc_config.CACertPath`.
        omit thv_ca_bundle: String,
        omit token_exchange_config: Option<TokenExchangeConfig>,
        /// The tools to show; empty means all.
        omit tools_filter: Vec<String>,
        /// Other names, descriptions and hints of tools, by their own names.
        omit tools_override: BTreeMap<String, ToolOverride>,
        always transport: Transport,
        /// Whether `X-Forwarded-*` of requests is believed.
        omit trust_proxy_headers: bool,
        omit upstream_swap_config: Option<UpstreamSwapConfig>,
        omit validating_webhooks: Vec<WebhookConfig>,
        /// Mounts, as `host:container[:ro]`. They go into the profile and are not mounted on Kubernetes.
        omit volumes: Vec<String>,
    }
}

word! {
    /// How the backend speaks MCP.
    pub enum Transport {
        /// On standard input and output.
        Stdio = "stdio",
        /// As server-sent events with a second endpoint for messages.
        Sse = "sse",
        /// At one endpoint that answers with JSON or a stream of events.
        StreamableHttp = "streamable-http",
    }
}

word! {
    /// How the proxy speaks MCP.
    pub enum ProxyMode {
        /// As server-sent events with a second endpoint for messages.
        Sse = "sse",
        /// At one endpoint that answers with JSON or a stream of events.
        StreamableHttp = "streamable-http",
    }
}

object! {
    /// Which files a desktop tool keeps from a backend. The member names are capitalised.
    pub struct IgnoreConfig {
        always load_global: bool = "LoadGlobal",
        always print_overlays: bool = "PrintOverlays",
    }
}

/// A RunConfig that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunConfigError {
    #[error("the RunConfig is not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the RunConfig does not fit: {0}")]
    Misfit(#[from] Misfit),
}

impl RunConfig {
    pub const SCHEMA_VERSION: &str = "v0.1.0";

    /// Reads a document as a proxy does at start: [normalised](Self::normalised).
    pub fn from_json(text: &str) -> Result<Self, RunConfigError> {
        let document = serde_json::from_str(text)?;
        Ok(read::<Self>(document)?.normalised())
    }

    /// Writes the document, indented by two spaces, without a newline at the end. Equal documents give equal texts.
    #[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "see below")]
    pub fn to_json(&self) -> String {
        // Every key is a text and nothing here writes a number that JSON lacks, so there is nothing to fail.
        serde_json::to_string_pretty(self).expect("a RunConfig can be written")
    }

    /// Fills in what an absent value means. Only the values that the reference settles while it reads: defaults of
    /// single steps belong to these steps. (That null lists and maps are empty needs no work here.)
    #[must_use]
    pub fn normalised(mut self) -> Self {
        if self.schema_version.is_empty() {
            Self::SCHEMA_VERSION.clone_into(&mut self.schema_version);
        }
        match self.transport {
            Transport::Stdio if self.proxy_mode.is_unset() => self.proxy_mode = ProxyMode::StreamableHttp,
            Transport::Sse => self.proxy_mode = ProxyMode::Sse,
            Transport::StreamableHttp => self.proxy_mode = ProxyMode::StreamableHttp,
            Transport::Stdio | Transport::Other(_) => {}
        }
        let profile = self.permission_profile.as_ref();
        self.isolate_network &= profile.is_none_or(PermissionProfile::allows_network_isolation);
        self
    }
}
