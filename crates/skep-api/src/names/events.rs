//! Events: `events.k8s.io` messages about an object, sent when something changes and not on every pass.

/// Who reports an event.
pub mod reporters {
    /// The controller of MCPServer.
    pub const MCP_SERVER: &str = "mcpserver-controller";
    /// The controller of MCPRemoteProxy.
    pub const MCP_REMOTE_PROXY: &str = "mcpremoteproxy-controller";
}

/// Why an event was sent. Events of a failed MCPRemoteProxy check carry the reason of the condition instead.
pub mod reasons {
    use crate::conditions::{reasons, types};
    use crate::constants::constants;

    constants! {
        // Pod templates, on MCPServer, MCPRemoteProxy and VirtualMCPServer; EmbeddingServer says ValidationFailed.

        /// The pod template cannot be read.
        pub const INVALID_POD_TEMPLATE_SPEC: &str = reasons::INVALID_POD_TEMPLATE_SPEC;

        // Config kinds, all six alike whatever the reason of their condition is.

        /// The spec was wrong and is right now.
        pub const CONFIG_VALID: &str = reasons::CONFIG_VALID;
        /// The spec is wrong.
        pub const CONFIG_INVALID: &str = reasons::CONFIG_INVALID;
        /// Deletion waits for workloads that still refer to the object.
        pub const DELETION_BLOCKED: &str = types::DELETION_BLOCKED;

        // MCPRegistry.

        /// The kind is deprecated. Sent once per generation.
        pub const MCP_REGISTRY_DEPRECATED: &str = "MCPRegistryDeprecated";

        // EmbeddingServer.

        /// The pod template cannot be read.
        pub const VALIDATION_FAILED: &str = reasons::VALIDATION_FAILED;
        /// The object is being deleted.
        pub const DELETED: &str = "Deleted";

        // VirtualMCPServer.

        /// A Secret that authentication needs is missing.
        pub const SECRET_VALIDATION_FAILED: &str = "SecretValidationFailed";
        /// The ConfigMap with policies cannot be used.
        pub const AUTHZ_CONFIG_MAP_INVALID: &str = reasons::AUTHZ_CONFIG_MAP_INVALID;
        /// The ConfigMap with policies does not exist.
        pub const AUTHZ_CONFIG_MAP_NOT_FOUND: &str = reasons::AUTHZ_CONFIG_MAP_NOT_FOUND;
        /// The deprecated place of the primary upstream is used. Sent once per generation.
        pub const AUTHZ_PRIMARY_UPSTREAM_PROVIDER_DEPRECATED: &str = "AuthzPrimaryUpstreamProviderDeprecated";
        /// The EmbeddingServer does not exist.
        pub const EMBEDDING_SERVER_REF_NOT_FOUND: &str = "EmbeddingServerRefNotFound";
        /// An embedding service is given by its URL. Sent once per generation.
        pub const EMBEDDING_SERVICE_MANUAL: &str = "EmbeddingServiceManual";
        /// The EmbeddingServer replaces a given URL. Sent once per generation.
        pub const EMBEDDING_SERVICE_OVERRIDDEN: &str = "EmbeddingServiceOverridden";
        /// No random bytes could be had for the session Secret.
        pub const HMAC_SECRET_GENERATION_FAILED: &str = "HMACSecretGenerationFailed";
        /// The session Secret could not be created.
        pub const HMAC_SECRET_CREATION_FAILED: &str = "HMACSecretCreationFailed";
        /// The session Secret that is there cannot be used.
        pub const HMAC_SECRET_VALIDATION_FAILED: &str = "HMACSecretValidationFailed";
        /// The session Secret was created.
        pub const HMAC_SECRET_CREATED: &str = "HMACSecretCreated";
        /// The Deployment was created.
        pub const DEPLOYMENT_CREATED: &str = "DeploymentCreated";
        /// The Deployment could not be created.
        pub const DEPLOYMENT_CREATION_FAILED: &str = "DeploymentCreationFailed";
        /// The Deployment was changed.
        pub const DEPLOYMENT_UPDATED: &str = "DeploymentUpdated";
        /// The Deployment could not be changed.
        pub const DEPLOYMENT_UPDATE_FAILED: &str = "DeploymentUpdateFailed";
        /// The Service was created.
        pub const SERVICE_CREATED: &str = "ServiceCreated";
        /// The Service could not be created.
        pub const SERVICE_CREATION_FAILED: &str = "ServiceCreationFailed";

        // Storage version migration, on CustomResourceDefinitions.

        /// All stored objects are of the storage version now.
        pub const STORAGE_VERSION_MIGRATION_SUCCEEDED: &str = "StorageVersionMigrationSucceeded";
        /// Some stored objects could not be rewritten, or the list of versions not be trimmed.
        pub const STORAGE_VERSION_MIGRATION_FAILED: &str = "StorageVersionMigrationFailed";
    }
}

/// What the operator was doing when it sent an event.
pub mod actions {
    use crate::constants::constants;

    constants! {
        // MCPServer, MCPRemoteProxy, EmbeddingServer and VirtualMCPServer.

        /// Reading the pod template.
        pub const VALIDATE_POD_TEMPLATE_SPEC: &str = "ValidatePodTemplateSpec";

        // MCPRemoteProxy.

        /// Checking the spec.
        pub const VALIDATE_SPEC: &str = "ValidateSpec";

        // Config kinds.

        /// Checking the spec.
        pub const VALIDATE: &str = "Validate";
        /// Deleting the object.
        pub const DELETE: &str = "Delete";

        // MCPRegistry.

        /// Reconciling the object.
        pub const RECONCILE: &str = "Reconcile";

        // EmbeddingServer.

        /// Letting go of the object.
        pub const FINALIZE: &str = "Finalize";

        // VirtualMCPServer.

        /// Looking for the Secrets that authentication needs.
        pub const VALIDATE_SECRETS: &str = "ValidateSecrets";
        /// Reading the ConfigMap with policies.
        pub const VALIDATE_AUTHZ_CONFIG_MAP: &str = "ValidateAuthzConfigMap";
        /// Finding the primary upstream.
        pub const RESOLVE_PRIMARY_UPSTREAM_PROVIDER: &str = "ResolvePrimaryUpstreamProvider";
        /// Looking for the EmbeddingServer.
        pub const VALIDATE_EMBEDDING_SERVER_REF: &str = "ValidateEmbeddingServerRef";
        /// Checking the embedding service.
        pub const VALIDATE_EMBEDDING_SERVICE: &str = "ValidateEmbeddingService";
        /// Choosing the embedding service.
        pub const RESOLVE_EMBEDDING_SERVICE: &str = "ResolveEmbeddingService";
        /// Making the bytes of the session Secret.
        pub const GENERATE_HMAC_SECRET: &str = "GenerateHMACSecret";
        /// Creating the session Secret.
        pub const CREATE_HMAC_SECRET: &str = "CreateHMACSecret";
        /// Checking the session Secret.
        pub const VALIDATE_HMAC_SECRET: &str = "ValidateHMACSecret";
        /// Creating the Deployment.
        pub const CREATE_DEPLOYMENT: &str = "CreateDeployment";
        /// Changing the Deployment.
        pub const UPDATE_DEPLOYMENT: &str = "UpdateDeployment";
        /// Creating the Service.
        pub const CREATE_SERVICE: &str = "CreateService";

        // Storage version migration.

        /// The migration as a whole.
        pub const MIGRATE: &str = "Migrate";
        /// Rewriting stored objects.
        pub const RESTORE_CRS: &str = "RestoreCRs";
        /// Trimming the list of stored versions.
        pub const PATCH_STORED_VERSIONS: &str = "PatchStoredVersions";
    }
}
