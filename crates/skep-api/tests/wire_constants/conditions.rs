//! Conditions: 00; 10 §4.2, §12, §16.3–16.4; 20 §2.4, §3–§12; 40 §2.1–2.4, §21.

use skep_api::conditions::{reasons, types};

use super::pinned;

#[test]
fn types_of_conditions() {
    pinned!(types {
        AUTHZ_CONFIG_REF_VALIDATED = "AuthzConfigRefValidated",
        AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED = "AuthzPrimaryUpstreamProviderIgnored",
        AUTHZ_UPSTREAM_SELECTION_WARNING = "AuthzUpstreamSelectionWarning",
        AUTH_CONFIGURED = "AuthConfigured",
        AUTH_SERVER_CONFIG_VALIDATED = "AuthServerConfigValidated",
        AUTH_SERVER_REF_VALIDATED = "AuthServerRefValidated",
        BACKENDS_DISCOVERED = "BackendsDiscovered",
        CA_BUNDLE_REF_VALIDATED = "CABundleRefValidated",
        COMPOSITE_TOOL_REFS_VALIDATED = "CompositeToolRefsValidated",
        CONFIGURATION_VALID = "ConfigurationValid",
        DEFAULT_AUTH_CONFIG = "DefaultAuthConfig",
        DEGRADED = "Degraded",
        DELETION_BLOCKED = "DeletionBlocked",
        EMBEDDING_SERVER_READY = "EmbeddingServerReady",
        EXTERNAL_AUTH_CONFIG_VALIDATED = "ExternalAuthConfigValidated",
        GROUP_REF_VALIDATED = "GroupRefValidated",
        HEADER_SECRET_REFS_VALIDATED = "HeaderSecretRefsValidated",
        IDENTITY_SYNTHESIZED = "IdentitySynthesized",
        MCP_SERVERS_CHECKED = "MCPServersChecked",
        MODEL_READY = "ModelReady",
        OIDC_CONFIG_REF_VALIDATED = "OIDCConfigRefValidated",
        POD_TEMPLATE_SPEC_VALID = "PodTemplateSpecValid",
        POD_TEMPLATE_VALID = "PodTemplateValid",
        RATE_LIMIT_CONFIG_VALID = "RateLimitConfigValid",
        READY = "Ready",
        REMOTE_AVAILABLE = "RemoteAvailable",
        REMOTE_URL_VALIDATED = "RemoteURLValidated",
        SESSION_STORAGE_WARNING = "SessionStorageWarning",
        STDIO_REPLICA_CAPPED = "StdioReplicaCapped",
        TELEMETRY_CONFIG_REF_VALIDATED = "TelemetryConfigRefValidated",
        TOOL_CONFIG_VALIDATED = "ToolConfigValidated",
        VALID = "Valid",
        VERIFIED = "Verified",
        VOLUME_READY = "VolumeReady",
        WEBHOOK_CONFIG_VALIDATED = "WebhookConfigValidated",
        WORKFLOW_VALIDATED = "WorkflowValidated",
    });
    assert_eq!(types::BACKEND_AUTH_CONFIG_PREFIX, "BackendAuthConfig-");
    assert_eq!(types::DISCOVERED_AUTH_CONFIG_PREFIX, "DiscoveredAuthConfig-");
}

#[test]
fn reasons_of_readiness() {
    pinned!(reasons::readiness {
        // 00. Handshakes are Skep's own: 00 asks for the condition and leaves the words open. So is the reason for specs
        // that the reference does not look at.
        INVALID_SPEC = "InvalidSpec",
        NAME_RESERVED = "NameReserved",
        AUTHENTICATION_REQUIRED = "AuthenticationRequired",
        HANDSHAKE_FAILED = "HandshakeFailed",
        HANDSHAKE_SUCCEEDED = "HandshakeSucceeded",
        // 10 §4.2, §16.4.
        READY = "Ready",
        NOT_READY = "NotReady",
        DEPLOYMENT_NOT_READY = "DeploymentNotReady",
        DEPLOYMENT_READY = "DeploymentReady",
        INVALID_POD_TEMPLATE_SPEC = "InvalidPodTemplateSpec",
        VALID_POD_TEMPLATE_SPEC = "ValidPodTemplateSpec",
        STDIO_REPLICA_CAP_NOT_ACTIVE = "StdioReplicaCapNotActive",
        STDIO_TRANSPORT_CAP_AT_1 = "StdioTransportCapAt1",
        SESSION_STORAGE_CONFIGURED = "SessionStorageConfigured",
        SESSION_STORAGE_MISSING_FOR_REPLICAS = "SessionStorageMissingForReplicas",
        SESSION_STORAGE_WARNING_NOT_APPLICABLE = "SessionStorageWarningNotApplicable",
        PER_USER_REQUIRES_AUTH = "PerUserRequiresAuth",
        RATE_LIMIT_CONFIG_VALID = "RateLimitConfigValid",
        RATE_LIMIT_NOT_APPLICABLE = "RateLimitNotApplicable",
        // 20 §10.2; 40 §2.3.
        CONFIG_MAP_FAILED = "ConfigMapFailed",
        DEPLOYMENT_FAILED = "DeploymentFailed",
        RBAC_FAILED = "RBACFailed",
        SERVICE_FAILED = "ServiceFailed",
        // 20 §11.1.
        MODEL_DOWNLOADING = "ModelDownloading",
        MODEL_FAILED = "ModelFailed",
        MODEL_READY = "ModelReady",
        VOLUME_CREATING = "VolumeCreating",
        VOLUME_FAILED = "VolumeFailed",
        VOLUME_READY = "VolumeReady",
        // 40 §2.4.
        POD_TEMPLATE_SPEC_VALID = "PodTemplateSpecValid",
    });
}

#[test]
fn reasons_about_references() {
    pinned!(reasons::references {
        // 10 §4.2; 20 §9; 40 §2.4.
        GROUP_REF_IS_VALID = "GroupRefIsValid",
        GROUP_REF_NOT_FOUND = "GroupRefNotFound",
        GROUP_REF_NOT_READY = "GroupRefNotReady",
        GROUP_REF_VALID = "GroupRefValid",
        CA_BUNDLE_REF_INVALID = "CABundleRefInvalid",
        CA_BUNDLE_REF_NOT_CONFIGURED = "CABundleRefNotConfigured",
        CA_BUNDLE_REF_NOT_FOUND = "CABundleRefNotFound",
        CA_BUNDLE_REF_VALID = "CABundleRefValid",
        // 10 §4.2.
        AUTHZ_CONFIG_REF_ERROR = "AuthzConfigRefError",
        AUTHZ_CONFIG_REF_NOT_FOUND = "AuthzConfigRefNotFound",
        AUTHZ_CONFIG_REF_NOT_VALID = "AuthzConfigRefNotValid",
        AUTHZ_CONFIG_REF_VALID = "AuthzConfigRefValid",
        OIDC_CONFIG_REF_ERROR = "OIDCConfigRefError",
        OIDC_CONFIG_REF_NOT_FOUND = "OIDCConfigRefNotFound",
        OIDC_CONFIG_REF_NOT_VALID = "OIDCConfigRefNotValid",
        OIDC_CONFIG_REF_VALID = "OIDCConfigRefValid",
        // 10 §4.2, §16.4; 40 §2.4.
        TELEMETRY_CONFIG_REF_ERROR = "TelemetryConfigRefError",
        TELEMETRY_CONFIG_REF_FETCH_ERROR = "TelemetryConfigRefFetchError",
        TELEMETRY_CONFIG_REF_INVALID = "TelemetryConfigRefInvalid",
        TELEMETRY_CONFIG_REF_NOT_FOUND = "TelemetryConfigRefNotFound",
        TELEMETRY_CONFIG_REF_VALID = "TelemetryConfigRefValid",
        // 10 §12.3, §16.4; 20 §9.
        AUTH_CONFIG_NOT_CONFIGURED = "AuthConfigNotConfigured",
        AUTH_CONFIG_NOT_FOUND = "AuthConfigNotFound",
        AUTH_CONFIG_VALID = "AuthConfigValid",
        EXTERNAL_AUTH_CONFIG_FETCH_ERROR = "ExternalAuthConfigFetchError",
        // Skep's own: the reference says nothing.
        EXTERNAL_AUTH_CONFIG_HAS_NO_EFFECT = "ExternalAuthConfigHasNoEffect",
        EXTERNAL_AUTH_CONFIG_NOT_FOUND = "ExternalAuthConfigNotFound",
        EXTERNAL_AUTH_CONFIG_VALID = "ExternalAuthConfigValid",
        INVALID_EXTERNAL_AUTH_CONFIG = "InvalidExternalAuthConfig",
        MULTI_UPSTREAM_NOT_SUPPORTED = "MultiUpstreamNotSupported",
        // 10 §12.3.
        AUTH_SERVER_REF_FETCH_ERROR = "AuthServerRefFetchError",
        AUTH_SERVER_REF_INVALID_CONFIG = "AuthServerRefInvalidConfig",
        AUTH_SERVER_REF_INVALID_KIND = "AuthServerRefInvalidKind",
        AUTH_SERVER_REF_INVALID_TYPE = "AuthServerRefInvalidType",
        AUTH_SERVER_REF_NOT_FOUND = "AuthServerRefNotFound",
        AUTH_SERVER_REF_VALID = "AuthServerRefValid",
        // 10 §4.2, §12.1.
        PRIMARY_UPSTREAM_PROVIDER_IGNORED = "PrimaryUpstreamProviderIgnored",
        TOOL_CONFIG_FETCH_ERROR = "ToolConfigFetchError",
        TOOL_CONFIG_NOT_FOUND = "ToolConfigNotFound",
        TOOL_CONFIG_VALID = "ToolConfigValid",
        WEBHOOK_CONFIG_INVALID = "WebhookConfigInvalid",
    });
}

#[test]
fn reasons_of_validity() {
    pinned!(reasons::validity {
        // 20 §3–§7, §9.
        CONFIG_INVALID = "ConfigInvalid",
        CONFIG_VALID = "ConfigValid",
        ENTERPRISE_REQUIRED = "EnterpriseRequired",
        INVALID_CONFIG = "InvalidConfig",
        VALIDATION_FAILED = "ValidationFailed",
        VALIDATION_SUCCEEDED = "ValidationSucceeded",
        // 20 §2.4, §4.4, §8.
        ALL_UPSTREAMS_HAVE_USER_INFO = "AllUpstreamsHaveUserInfo",
        LIST_MCP_SERVERS_CHECK_FAILED = "ListMCPServersCheckFailed",
        LIST_MCP_SERVERS_CHECK_SUCCEEDED = "ListMCPServersCheckSucceeded",
        OAUTH2_UPSTREAM_WITHOUT_USER_INFO = "OAuth2UpstreamWithoutUserInfo",
        REFERENCED_BY_WORKLOADS = "ReferencedByWorkloads",
        // 10 §16.3; 20 §9; 40 §2.4.
        AUTHZ_CONFIG_MAP_INVALID = "AuthzConfigMapInvalid",
        AUTHZ_CONFIG_MAP_NOT_FOUND = "AuthzConfigMapNotFound",
        AUTHZ_POLICY_SYNTAX_INVALID = "AuthzPolicySyntaxInvalid",
        AUTH_INVALID = "AuthInvalid",
        AUTH_VALID = "AuthValid",
        CONFIGURATION_VALID = "ConfigurationValid",
        HEADER_SECRETS_VALID = "HeaderSecretsValid",
        HEADER_SECRET_NOT_FOUND = "HeaderSecretNotFound",
        REMOTE_URL_INVALID = "RemoteURLInvalid",
        REMOTE_URL_VALID = "RemoteURLValid",
        // 20 §12.
        DEPENDENCY_CYCLE = "DependencyCycle",
        SCHEMA_INVALID = "SchemaInvalid",
        TEMPLATE_INVALID = "TemplateInvalid",
        TOOL_NOT_FOUND = "ToolNotFound",
        VALIDATION_SUCCESS = "ValidationSuccess",
        WORKFLOW_NOT_READY = "WorkflowNotReady",
        WORKFLOW_READY = "WorkflowReady",
    });
}

#[test]
fn reasons_of_virtual_mcp_servers() {
    pinned!(reasons::virtual_mcp {
        // 40 §2.1–2.2.
        AUTHZ_PRIMARY_PROVIDER_REQUIRES_AUTH_SERVER = "AuthzPrimaryProviderRequiresAuthServer",
        AUTHZ_REQUIRES_UPSTREAM = "AuthzRequiresUpstream",
        AUTHZ_UPSTREAM_AUTO_SELECTED = "AuthzUpstreamAutoSelected",
        AUTHZ_UPSTREAM_UNKNOWN = "AuthzUpstreamUnknown",
        AUTH_SERVER_CONFIG_INVALID = "AuthServerConfigInvalid",
        AUTH_SERVER_CONFIG_VALID = "AuthServerConfigValid",
        // 40 §2.3–2.4.
        AMBIGUOUS_SUBJECT_PROVIDER = "AmbiguousSubjectProvider",
        BACKENDS_DEGRADED = "BackendsDegraded",
        BACKENDS_UNAVAILABLE = "BackendsUnavailable",
        BACKENDS_UNKNOWN = "BackendsUnknown",
        COMPOSITE_TOOL_REFS_VALID = "CompositeToolRefsValid",
        COMPOSITE_TOOL_REF_INVALID = "CompositeToolRefInvalid",
        COMPOSITE_TOOL_REF_NOT_FOUND = "CompositeToolRefNotFound",
        CONVERSION_FAILED = "ConversionFailed",
        CONVERSION_SUCCEEDED = "ConversionSucceeded",
        EMBEDDING_SERVER_NOT_FOUND = "EmbeddingServerNotFound",
        EMBEDDING_SERVER_NOT_READY = "EmbeddingServerNotReady",
        EMBEDDING_SERVER_READY = "EmbeddingServerReady",
        // 40 §21.
        ALL_BACKENDS_ROUTABLE = "AllBackendsRoutable",
        BACKENDS_DISCOVERED = "BackendsDiscovered",
        BACKENDS_PENDING = "BackendsPending",
        NO_ROUTABLE_BACKENDS = "NoRoutableBackends",
        SOME_BACKENDS_UNHEALTHY = "SomeBackendsUnhealthy",
    });
}

#[test]
fn every_area_is_among_all_reasons() {
    let areas = [reasons::readiness::ALL, reasons::references::ALL, reasons::validity::ALL, reasons::virtual_mcp::ALL];
    assert_eq!(reasons::ALL, areas);
}
