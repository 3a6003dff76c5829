//! The types of conditions: what a condition is a statement about.
//!
//! An advisory condition reports something worth knowing and never stops a rollout. A condition whose input is
//! taken out of the spec is removed, unless its comment says that it is always present.

use crate::constants::constants;

constants! {
    // Every kind.

    /// The object does what it is for.
    pub const READY: &str = "Ready";
    /// The spec makes sense. On config kinds this is what consumers wait for.
    pub const VALID: &str = "Valid";

    // Pods and scaling of MCPServer, MCPRemoteProxy, MCPRegistry, EmbeddingServer and VirtualMCPServer.

    /// An MCP handshake through the proxy of an MCPServer succeeded. Additive, advisory.
    pub const VERIFIED: &str = "Verified";
    /// The pod template of the spec can be read; absent without a template. VirtualMCPServer says
    /// [`POD_TEMPLATE_SPEC_VALID`].
    pub const POD_TEMPLATE_VALID: &str = "PodTemplateValid";
    /// [`POD_TEMPLATE_VALID`] as VirtualMCPServer spells it.
    pub const POD_TEMPLATE_SPEC_VALID: &str = "PodTemplateSpecValid";
    /// The stdio transport holds an MCPServer at one replica. Advisory, always present.
    pub const STDIO_REPLICA_CAPPED: &str = "StdioReplicaCapped";
    /// Several replicas run without a shared session store. Advisory, always present on all three workloads.
    pub const SESSION_STORAGE_WARNING: &str = "SessionStorageWarning";
    /// The rate limits of an MCPServer can be enforced. Always present.
    pub const RATE_LIMIT_CONFIG_VALID: &str = "RateLimitConfigValid";

    // References of the workloads and of MCPServerEntry.

    /// The MCPGroup exists and is ready. Advisory, except on VirtualMCPServer and MCPServerEntry.
    pub const GROUP_REF_VALIDATED: &str = "GroupRefValidated";
    /// The ConfigMap with trusted certificates exists and has the key. Advisory on workloads.
    pub const CA_BUNDLE_REF_VALIDATED: &str = "CABundleRefValidated";
    /// The MCPOIDCConfig exists and is valid.
    pub const OIDC_CONFIG_REF_VALIDATED: &str = "OIDCConfigRefValidated";
    /// The MCPAuthzConfig exists and is valid.
    pub const AUTHZ_CONFIG_REF_VALIDATED: &str = "AuthzConfigRefValidated";
    /// The MCPTelemetryConfig exists and its spec is sound.
    pub const TELEMETRY_CONFIG_REF_VALIDATED: &str = "TelemetryConfigRefValidated";
    /// The MCPExternalAuthConfig can be used. On MCPServer it appears only when it is False.
    pub const EXTERNAL_AUTH_CONFIG_VALIDATED: &str = "ExternalAuthConfigValidated";
    /// The embedded auth server named by spec.authServerRef can be used.
    pub const AUTH_SERVER_REF_VALIDATED: &str = "AuthServerRefValidated";
    /// The MCPToolConfig of an MCPRemoteProxy exists. MCPServer has no such condition.
    pub const TOOL_CONFIG_VALIDATED: &str = "ToolConfigValidated";
    /// The MCPWebhookConfig of an MCPServer can be used; it appears only when it is False.
    pub const WEBHOOK_CONFIG_VALIDATED: &str = "WebhookConfigValidated";
    /// A primary upstream provider is named where it has no effect. Advisory.
    pub const AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED: &str = "AuthzPrimaryUpstreamProviderIgnored";

    // MCPRemoteProxy; AuthConfigured also VirtualMCPServer.

    /// All checks of the spec of an MCPRemoteProxy passed.
    pub const CONFIGURATION_VALID: &str = "ConfigurationValid";
    /// What authentication needs is in place. On MCPRemoteProxy it appears only when it is False.
    pub const AUTH_CONFIGURED: &str = "AuthConfigured";
    /// The remote server answers. Part of the contract, written by nobody.
    pub const REMOTE_AVAILABLE: &str = "RemoteAvailable";

    // Config kinds.

    /// Deletion waits until no workload refers to the object any more.
    pub const DELETION_BLOCKED: &str = "DeletionBlocked";
    /// An embedded auth server has to make up identities for some upstream. Advisory; also on VirtualMCPServer.
    pub const IDENTITY_SYNTHESIZED: &str = "IdentitySynthesized";

    // MCPGroup.

    /// The members of the group could be listed.
    pub const MCP_SERVERS_CHECKED: &str = "MCPServersChecked";

    // MCPServerEntry.

    /// The remote URL is well formed and points to no forbidden address.
    pub const REMOTE_URL_VALIDATED: &str = "RemoteURLValidated";
    /// Every Secret that feeds a forwarded header exists and has its key; absent without such headers.
    pub const HEADER_SECRET_REFS_VALIDATED: &str = "HeaderSecretRefsValidated";

    // EmbeddingServer: reserved, not written yet.

    /// The model is loaded. Reserved.
    pub const MODEL_READY: &str = "ModelReady";
    /// The volume for the model cache is there. Reserved.
    pub const VOLUME_READY: &str = "VolumeReady";

    // VirtualMCPCompositeToolDefinition.

    /// The workflow passed validation.
    pub const WORKFLOW_VALIDATED: &str = "WorkflowValidated";

    // VirtualMCPServer, written by the operator.

    /// Every referenced composite tool definition exists and is not invalid. True without references.
    pub const COMPOSITE_TOOL_REFS_VALIDATED: &str = "CompositeToolRefsValidated";
    /// The referenced EmbeddingServer serves.
    pub const EMBEDDING_SERVER_READY: &str = "EmbeddingServerReady";
    /// The embedded auth server of the spec is sound; absent without one.
    pub const AUTH_SERVER_CONFIG_VALIDATED: &str = "AuthServerConfigValidated";
    /// Policies read the token of an upstream that nobody chose explicitly. Advisory.
    pub const AUTHZ_UPSTREAM_SELECTION_WARNING: &str = "AuthzUpstreamSelectionWarning";
    /// The default outgoing authentication could be converted; absent without a default.
    pub const DEFAULT_AUTH_CONFIG: &str = "DefaultAuthConfig";

    // VirtualMCPServer, written by the vMCP process.

    /// The process has looked for backends.
    pub const BACKENDS_DISCOVERED: &str = "BackendsDiscovered";
    /// Some backend works badly; absent while none does.
    pub const DEGRADED: &str = "Degraded";
}

/// What the type of [`backend_auth_config`] begins with, for pruning the conditions of backends that are gone.
pub const BACKEND_AUTH_CONFIG_PREFIX: &str = "BackendAuthConfig-";
/// What the type of [`discovered_auth_config`] begins with, for pruning the conditions of backends that are gone.
pub const DISCOVERED_AUTH_CONFIG_PREFIX: &str = "DiscoveredAuthConfig-";

/// The authentication that a VirtualMCPServer sets for one backend could be converted.
///
/// A condition type has at most 316 characters; the longest object name of 253 fits.
pub fn backend_auth_config(backend: &str) -> String {
    format!("{BACKEND_AUTH_CONFIG_PREFIX}{backend}")
}

/// The authentication that a group member brings along could be converted for a VirtualMCPServer.
///
/// A condition type has at most 316 characters; the longest object name of 253 fits.
pub fn discovered_auth_config(backend: &str) -> String {
    format!("{DISCOVERED_AUTH_CONFIG_PREFIX}{backend}")
}
