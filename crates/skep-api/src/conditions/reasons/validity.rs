//! Reasons that judge a spec, and what config kinds and groups have to say about themselves.

use crate::constants::constants;

constants! {
    // Valid, on config kinds, VirtualMCPServer and MCPServerEntry; also Ready of MCPRegistry.

    /// The spec passed, on MCPExternalAuthConfig, MCPToolConfig, MCPTelemetryConfig, MCPWebhookConfig, VirtualMCPServer.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// The counterpart of [`VALIDATION_SUCCEEDED`], and of [`VALIDATION_SUCCESS`] when no finer reason fits.
    pub const VALIDATION_FAILED: &str = "ValidationFailed";
    /// The spec passed, on MCPOIDCConfig, MCPAuthzConfig and MCPServerEntry.
    pub const CONFIG_VALID: &str = "ConfigValid";
    /// The counterpart of [`CONFIG_VALID`].
    pub const CONFIG_INVALID: &str = "ConfigInvalid";
    /// No handler for the `obo` type is built in. Skep has one; objects written by the reference carry this.
    pub const ENTERPRISE_REQUIRED: &str = "EnterpriseRequired";
    /// The `obo` handler refused the spec; on a workload: the embedded auth server could not be configured.
    pub const INVALID_CONFIG: &str = "InvalidConfig";

    // DeletionBlocked and IdentitySynthesized.

    /// Workloads still refer to the config object.
    pub const REFERENCED_BY_WORKLOADS: &str = "ReferencedByWorkloads";
    /// Some OAuth 2.0 upstream tells nothing about the user.
    pub const OAUTH2_UPSTREAM_WITHOUT_USER_INFO: &str = "OAuth2UpstreamWithoutUserInfo";
    /// Every upstream tells who the user is.
    pub const ALL_UPSTREAMS_HAVE_USER_INFO: &str = "AllUpstreamsHaveUserInfo";

    // MCPServersChecked, on MCPGroup.

    /// All three kinds of members were listed.
    pub const LIST_MCP_SERVERS_CHECK_SUCCEEDED: &str = "ListMCPServersCheckSucceeded";
    /// One kind of members could not be listed.
    pub const LIST_MCP_SERVERS_CHECK_FAILED: &str = "ListMCPServersCheckFailed";

    // ConfigurationValid, RemoteURLValidated and HeaderSecretRefsValidated.

    /// All checks of an MCPRemoteProxy passed.
    pub const CONFIGURATION_VALID: &str = "ConfigurationValid";
    /// The remote URL is fine, on MCPServerEntry.
    pub const REMOTE_URL_VALID: &str = "RemoteURLValid";
    /// The remote URL is malformed or forbidden, on MCPRemoteProxy and MCPServerEntry.
    pub const REMOTE_URL_INVALID: &str = "RemoteURLInvalid";
    /// An inline Cedar policy does not parse.
    pub const AUTHZ_POLICY_SYNTAX_INVALID: &str = "AuthzPolicySyntaxInvalid";
    /// Every header Secret and key exists, on MCPServerEntry.
    pub const HEADER_SECRETS_VALID: &str = "HeaderSecretsValid";
    /// A header Secret, or on MCPServerEntry its key, does not exist.
    pub const HEADER_SECRET_NOT_FOUND: &str = "HeaderSecretNotFound";

    // AuthConfigured; the ConfigMap reasons also ConfigurationValid.

    /// Secrets and policies are in place, on VirtualMCPServer.
    pub const AUTH_VALID: &str = "AuthValid";
    /// A Secret is missing, or the spec of an MCPRemoteProxy failed its checks.
    pub const AUTH_INVALID: &str = "AuthInvalid";
    /// The ConfigMap with policies does not exist.
    pub const AUTHZ_CONFIG_MAP_NOT_FOUND: &str = "AuthzConfigMapNotFound";
    /// The ConfigMap with policies cannot be used.
    pub const AUTHZ_CONFIG_MAP_INVALID: &str = "AuthzConfigMapInvalid";

    // WorkflowValidated and Ready, on VirtualMCPCompositeToolDefinition.

    /// The workflow passed.
    pub const VALIDATION_SUCCESS: &str = "ValidationSuccess";
    /// A JSON Schema of the workflow is not one.
    pub const SCHEMA_INVALID: &str = "SchemaInvalid";
    /// A template of the workflow does not parse.
    pub const TEMPLATE_INVALID: &str = "TemplateInvalid";
    /// Steps wait for each other in a circle.
    pub const DEPENDENCY_CYCLE: &str = "DependencyCycle";
    /// A step names a tool that cannot be one.
    pub const TOOL_NOT_FOUND: &str = "ToolNotFound";
    /// The workflow can be offered.
    pub const WORKFLOW_READY: &str = "WorkflowReady";
    /// The workflow cannot be offered.
    pub const WORKFLOW_NOT_READY: &str = "WorkflowNotReady";
}
