//! Reasons that judge what a workload or entry refers to.

use crate::constants::constants;

constants! {
    // GroupRefValidated.

    /// The group is ready, on MCPServer, MCPRemoteProxy and MCPServerEntry.
    pub const GROUP_REF_IS_VALID: &str = "GroupRefIsValid";
    /// The group is ready, on VirtualMCPServer.
    pub const GROUP_REF_VALID: &str = "GroupRefValid";
    /// The group does not exist or is being deleted.
    pub const GROUP_REF_NOT_FOUND: &str = "GroupRefNotFound";
    /// The group exists but its phase is not Ready.
    pub const GROUP_REF_NOT_READY: &str = "GroupRefNotReady";

    // CABundleRefValidated.

    /// The ConfigMap exists and, on workloads, has the key.
    pub const CA_BUNDLE_REF_VALID: &str = "CABundleRefValid";
    /// The ConfigMap does not exist.
    pub const CA_BUNDLE_REF_NOT_FOUND: &str = "CABundleRefNotFound";
    /// The reference is malformed or the key is missing.
    pub const CA_BUNDLE_REF_INVALID: &str = "CABundleRefInvalid";
    /// An MCPServerEntry names no CA bundle.
    pub const CA_BUNDLE_REF_NOT_CONFIGURED: &str = "CABundleRefNotConfigured";

    // OIDCConfigRefValidated and AuthzConfigRefValidated.

    /// The MCPOIDCConfig exists and is valid.
    pub const OIDC_CONFIG_REF_VALID: &str = "OIDCConfigRefValid";
    /// The MCPOIDCConfig could not be read.
    pub const OIDC_CONFIG_REF_NOT_FOUND: &str = "OIDCConfigRefNotFound";
    /// The MCPOIDCConfig is not valid, or not yet known to be.
    pub const OIDC_CONFIG_REF_NOT_VALID: &str = "OIDCConfigRefNotValid";
    /// Another failure around the MCPOIDCConfig. Part of the contract; the reference never writes it.
    pub const OIDC_CONFIG_REF_ERROR: &str = "OIDCConfigRefError";
    /// The MCPAuthzConfig exists and is valid.
    pub const AUTHZ_CONFIG_REF_VALID: &str = "AuthzConfigRefValid";
    /// The MCPAuthzConfig could not be read.
    pub const AUTHZ_CONFIG_REF_NOT_FOUND: &str = "AuthzConfigRefNotFound";
    /// The MCPAuthzConfig is not valid, or its type does not suit a VirtualMCPServer.
    pub const AUTHZ_CONFIG_REF_NOT_VALID: &str = "AuthzConfigRefNotValid";
    /// Another failure around the MCPAuthzConfig. Part of the contract; the reference never writes it.
    pub const AUTHZ_CONFIG_REF_ERROR: &str = "AuthzConfigRefError";

    // TelemetryConfigRefValidated.

    /// The MCPTelemetryConfig exists and is sound.
    pub const TELEMETRY_CONFIG_REF_VALID: &str = "TelemetryConfigRefValid";
    /// The MCPTelemetryConfig does not exist.
    pub const TELEMETRY_CONFIG_REF_NOT_FOUND: &str = "TelemetryConfigRefNotFound";
    /// The MCPTelemetryConfig exists but its spec is not sound.
    pub const TELEMETRY_CONFIG_REF_INVALID: &str = "TelemetryConfigRefInvalid";
    /// The MCPTelemetryConfig could not be fetched, on MCPServer.
    pub const TELEMETRY_CONFIG_REF_ERROR: &str = "TelemetryConfigRefError";
    /// The MCPTelemetryConfig could not be fetched, on MCPRemoteProxy and VirtualMCPServer.
    pub const TELEMETRY_CONFIG_REF_FETCH_ERROR: &str = "TelemetryConfigRefFetchError";

    // ExternalAuthConfigValidated; a config that is not valid lends its own reason instead.

    /// The config can be used, on MCPRemoteProxy.
    pub const EXTERNAL_AUTH_CONFIG_VALID: &str = "ExternalAuthConfigValid";
    /// The config does not exist, on MCPRemoteProxy.
    pub const EXTERNAL_AUTH_CONFIG_NOT_FOUND: &str = "ExternalAuthConfigNotFound";
    /// The config could not be fetched, on MCPRemoteProxy; its ConfigurationValid says so for a missing one too.
    pub const EXTERNAL_AUTH_CONFIG_FETCH_ERROR: &str = "ExternalAuthConfigFetchError";
    /// The config is not valid and gives no reason of its own. Also of the auth conditions of VirtualMCPServer.
    pub const INVALID_EXTERNAL_AUTH_CONFIG: &str = "InvalidExternalAuthConfig";
    /// The config can be used, but its type does nothing for this kind of workload.
    pub const EXTERNAL_AUTH_CONFIG_HAS_NO_EFFECT: &str = "ExternalAuthConfigHasNoEffect";
    /// The embedded auth server has several upstreams, which only VirtualMCPServer can serve.
    pub const MULTI_UPSTREAM_NOT_SUPPORTED: &str = "MultiUpstreamNotSupported";
    /// The config exists, on MCPServerEntry.
    pub const AUTH_CONFIG_VALID: &str = "AuthConfigValid";
    /// The config does not exist, on MCPServerEntry.
    pub const AUTH_CONFIG_NOT_FOUND: &str = "AuthConfigNotFound";
    /// An MCPServerEntry names no config.
    pub const AUTH_CONFIG_NOT_CONFIGURED: &str = "AuthConfigNotConfigured";

    // AuthServerRefValidated; also MultiUpstreamNotSupported.

    /// The embedded auth server can be used.
    pub const AUTH_SERVER_REF_VALID: &str = "AuthServerRefValid";
    /// The config does not exist.
    pub const AUTH_SERVER_REF_NOT_FOUND: &str = "AuthServerRefNotFound";
    /// The config could not be fetched.
    pub const AUTH_SERVER_REF_FETCH_ERROR: &str = "AuthServerRefFetchError";
    /// The reference names a kind other than MCPExternalAuthConfig.
    pub const AUTH_SERVER_REF_INVALID_KIND: &str = "AuthServerRefInvalidKind";
    /// The config is of another type than embeddedAuthServer.
    pub const AUTH_SERVER_REF_INVALID_TYPE: &str = "AuthServerRefInvalidType";
    /// The embedded auth server could not be configured for this workload.
    pub const AUTH_SERVER_REF_INVALID_CONFIG: &str = "AuthServerRefInvalidConfig";

    // ToolConfigValidated on MCPRemoteProxy, WebhookConfigValidated and
    // AuthzPrimaryUpstreamProviderIgnored.

    /// The MCPToolConfig exists.
    pub const TOOL_CONFIG_VALID: &str = "ToolConfigValid";
    /// The MCPToolConfig does not exist.
    pub const TOOL_CONFIG_NOT_FOUND: &str = "ToolConfigNotFound";
    /// The MCPToolConfig could not be fetched.
    pub const TOOL_CONFIG_FETCH_ERROR: &str = "ToolConfigFetchError";
    /// The MCPWebhookConfig is missing or not sound.
    pub const WEBHOOK_CONFIG_INVALID: &str = "WebhookConfigInvalid";
    /// A primary upstream provider is named on MCPServer or MCPRemoteProxy.
    pub const PRIMARY_UPSTREAM_PROVIDER_IGNORED: &str = "PrimaryUpstreamProviderIgnored";
}
