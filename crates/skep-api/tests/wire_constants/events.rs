//! Events: 10 §4.2, §16.3–16.4; 20 §2.6, §10.2, §11.2, §13; 40 §2.5.

use skep_api::names::events;

use super::pinned;

#[test]
fn reporters_have_their_names() {
    assert_eq!(events::reporters::MCP_SERVER, "mcpserver-controller");
    assert_eq!(events::reporters::MCP_REMOTE_PROXY, "mcpremoteproxy-controller");
}

#[test]
fn reasons_of_events() {
    pinned!(events::reasons {
        // 10 §4.2; 40 §2.5.
        INVALID_POD_TEMPLATE_SPEC = "InvalidPodTemplateSpec",
        // 20 §2.6.
        CONFIG_INVALID = "ConfigInvalid",
        CONFIG_VALID = "ConfigValid",
        DELETION_BLOCKED = "DeletionBlocked",
        // 20 §10.2, §11.2.
        MCP_REGISTRY_DEPRECATED = "MCPRegistryDeprecated",
        DELETED = "Deleted",
        VALIDATION_FAILED = "ValidationFailed",
        // 40 §2.5.
        AUTHZ_CONFIG_MAP_INVALID = "AuthzConfigMapInvalid",
        AUTHZ_CONFIG_MAP_NOT_FOUND = "AuthzConfigMapNotFound",
        AUTHZ_PRIMARY_UPSTREAM_PROVIDER_DEPRECATED = "AuthzPrimaryUpstreamProviderDeprecated",
        DEPLOYMENT_CREATED = "DeploymentCreated",
        DEPLOYMENT_CREATION_FAILED = "DeploymentCreationFailed",
        DEPLOYMENT_UPDATED = "DeploymentUpdated",
        DEPLOYMENT_UPDATE_FAILED = "DeploymentUpdateFailed",
        EMBEDDING_SERVER_REF_NOT_FOUND = "EmbeddingServerRefNotFound",
        EMBEDDING_SERVICE_MANUAL = "EmbeddingServiceManual",
        EMBEDDING_SERVICE_OVERRIDDEN = "EmbeddingServiceOverridden",
        HMAC_SECRET_CREATED = "HMACSecretCreated",
        HMAC_SECRET_CREATION_FAILED = "HMACSecretCreationFailed",
        HMAC_SECRET_GENERATION_FAILED = "HMACSecretGenerationFailed",
        HMAC_SECRET_VALIDATION_FAILED = "HMACSecretValidationFailed",
        SECRET_VALIDATION_FAILED = "SecretValidationFailed",
        SERVICE_CREATED = "ServiceCreated",
        SERVICE_CREATION_FAILED = "ServiceCreationFailed",
        // 20 §13.
        STORAGE_VERSION_MIGRATION_FAILED = "StorageVersionMigrationFailed",
        STORAGE_VERSION_MIGRATION_SUCCEEDED = "StorageVersionMigrationSucceeded",
    });
}

#[test]
fn actions_of_events() {
    pinned!(events::actions {
        // 10 §4.2, §16.3.
        VALIDATE_POD_TEMPLATE_SPEC = "ValidatePodTemplateSpec",
        VALIDATE_SPEC = "ValidateSpec",
        // 20 §2.6.
        DELETE = "Delete",
        VALIDATE = "Validate",
        // 20 §10.2, §11.2.
        FINALIZE = "Finalize",
        RECONCILE = "Reconcile",
        // 40 §2.5.
        CREATE_DEPLOYMENT = "CreateDeployment",
        CREATE_HMAC_SECRET = "CreateHMACSecret",
        CREATE_SERVICE = "CreateService",
        GENERATE_HMAC_SECRET = "GenerateHMACSecret",
        RESOLVE_EMBEDDING_SERVICE = "ResolveEmbeddingService",
        RESOLVE_PRIMARY_UPSTREAM_PROVIDER = "ResolvePrimaryUpstreamProvider",
        UPDATE_DEPLOYMENT = "UpdateDeployment",
        VALIDATE_AUTHZ_CONFIG_MAP = "ValidateAuthzConfigMap",
        VALIDATE_EMBEDDING_SERVER_REF = "ValidateEmbeddingServerRef",
        VALIDATE_EMBEDDING_SERVICE = "ValidateEmbeddingService",
        VALIDATE_HMAC_SECRET = "ValidateHMACSecret",
        VALIDATE_SECRETS = "ValidateSecrets",
        // 20 §13.
        MIGRATE = "Migrate",
        PATCH_STORED_VERSIONS = "PatchStoredVersions",
        RESTORE_CRS = "RestoreCRs",
    });
}
