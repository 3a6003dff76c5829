//! Reasons that tell how pods are doing and how many of them there may be.

use crate::constants::constants;

constants! {
    // Ready, on more than one kind.

    /// MCPServer and MCPRegistry are up.
    pub const READY: &str = "Ready";
    /// Not up yet, or stopped by a failure that the message tells.
    pub const NOT_READY: &str = "NotReady";
    /// The object's name would make selectors match foreign pods; nothing is created.
    pub const NAME_RESERVED: &str = "NameReserved";
    /// The spec cannot be read, or names what cannot be. Also of Valid and ConfigurationValid.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// MCPRemoteProxy and VirtualMCPServer are up, by their Deployment.
    pub const DEPLOYMENT_READY: &str = "DeploymentReady";
    /// The Deployment of an MCPRemoteProxy or VirtualMCPServer has no ready pod yet.
    pub const DEPLOYMENT_NOT_READY: &str = "DeploymentNotReady";
    /// The pods of a VirtualMCPServer failed, or the Deployment of an MCPRegistry could not be written.
    pub const DEPLOYMENT_FAILED: &str = "DeploymentFailed";

    // Verified, on MCPServer.

    /// The handshake succeeded; the message counts the tools.
    pub const HANDSHAKE_SUCCEEDED: &str = "HandshakeSucceeded";
    /// The handshake did not succeed; the message says how it ended.
    pub const HANDSHAKE_FAILED: &str = "HandshakeFailed";
    /// The proxy wants to know who asks, so that only a user can see whether the server answers.
    pub const AUTHENTICATION_REQUIRED: &str = "AuthenticationRequired";

    // Ready of MCPRegistry; also ValidationFailed and DeploymentFailed.

    /// The ConfigMap could not be written.
    pub const CONFIG_MAP_FAILED: &str = "ConfigMapFailed";
    /// Service account, role or binding could not be written.
    pub const RBAC_FAILED: &str = "RBACFailed";
    /// The Service could not be written.
    pub const SERVICE_FAILED: &str = "ServiceFailed";

    // PodTemplateValid and PodTemplateSpecValid.

    /// The template can be read, on every kind but VirtualMCPServer.
    pub const VALID_POD_TEMPLATE_SPEC: &str = "ValidPodTemplateSpec";
    /// The template can be read, on VirtualMCPServer.
    pub const POD_TEMPLATE_SPEC_VALID: &str = "PodTemplateSpecValid";
    /// The template cannot be read, or not be merged.
    pub const INVALID_POD_TEMPLATE_SPEC: &str = "InvalidPodTemplateSpec";

    // StdioReplicaCapped, SessionStorageWarning and RateLimitConfigValid.

    /// More than one replica was asked for with the stdio transport; one runs.
    pub const STDIO_TRANSPORT_CAP_AT_1: &str = "StdioTransportCapAt1";
    /// Nothing is capped.
    pub const STDIO_REPLICA_CAP_NOT_ACTIVE: &str = "StdioReplicaCapNotActive";
    /// Several replicas, no Redis.
    pub const SESSION_STORAGE_MISSING_FOR_REPLICAS: &str = "SessionStorageMissingForReplicas";
    /// Several replicas, with Redis.
    pub const SESSION_STORAGE_CONFIGURED: &str = "SessionStorageConfigured";
    /// At most one replica, or a number that nobody fixed.
    pub const SESSION_STORAGE_WARNING_NOT_APPLICABLE: &str = "SessionStorageWarningNotApplicable";
    /// No rate limits are configured.
    pub const RATE_LIMIT_NOT_APPLICABLE: &str = "RateLimitNotApplicable";
    /// The rate limits can be enforced.
    pub const RATE_LIMIT_CONFIG_VALID: &str = "RateLimitConfigValid";
    /// Limits per user are configured, but callers are not authenticated.
    pub const PER_USER_REQUIRES_AUTH: &str = "PerUserRequiresAuth";

    // ModelReady and VolumeReady of EmbeddingServer: reserved, not written yet.

    /// The model is being downloaded.
    pub const MODEL_DOWNLOADING: &str = "ModelDownloading";
    /// The model is loaded.
    pub const MODEL_READY: &str = "ModelReady";
    /// The model could not be loaded.
    pub const MODEL_FAILED: &str = "ModelFailed";
    /// The volume is being created.
    pub const VOLUME_CREATING: &str = "VolumeCreating";
    /// The volume is bound.
    pub const VOLUME_READY: &str = "VolumeReady";
    /// The volume could not be created.
    pub const VOLUME_FAILED: &str = "VolumeFailed";
}
