//! Reasons that only VirtualMCPServer has. Two programs write them: the operator and the vMCP process.

use crate::constants::constants;

constants! {
    // CompositeToolRefsValidated and EmbeddingServerReady.

    /// Every referenced definition can be used, or there is none.
    pub const COMPOSITE_TOOL_REFS_VALID: &str = "CompositeToolRefsValid";
    /// A referenced definition does not exist.
    pub const COMPOSITE_TOOL_REF_NOT_FOUND: &str = "CompositeToolRefNotFound";
    /// A referenced definition is known to be invalid.
    pub const COMPOSITE_TOOL_REF_INVALID: &str = "CompositeToolRefInvalid";
    /// The EmbeddingServer serves.
    pub const EMBEDDING_SERVER_READY: &str = "EmbeddingServerReady";
    /// The EmbeddingServer does not exist.
    pub const EMBEDDING_SERVER_NOT_FOUND: &str = "EmbeddingServerNotFound";
    /// The EmbeddingServer has no ready replica yet.
    pub const EMBEDDING_SERVER_NOT_READY: &str = "EmbeddingServerNotReady";

    // AuthServerConfigValidated and AuthzUpstreamSelectionWarning.

    /// The embedded auth server is sound.
    pub const AUTH_SERVER_CONFIG_VALID: &str = "AuthServerConfigValid";
    /// The embedded auth server is not sound; then also the reason of Ready.
    pub const AUTH_SERVER_CONFIG_INVALID: &str = "AuthServerConfigInvalid";
    /// Policies need an upstream, but the auth server has none. Hidden by [`AUTH_SERVER_CONFIG_INVALID`] in practice.
    pub const AUTHZ_REQUIRES_UPSTREAM: &str = "AuthzRequiresUpstream";
    /// The primary upstream of the policies is not among the upstreams.
    pub const AUTHZ_UPSTREAM_UNKNOWN: &str = "AuthzUpstreamUnknown";
    /// A primary upstream is named, but there is no embedded auth server.
    pub const AUTHZ_PRIMARY_PROVIDER_REQUIRES_AUTH_SERVER: &str = "AuthzPrimaryProviderRequiresAuthServer";
    /// Of several upstreams the first was taken.
    pub const AUTHZ_UPSTREAM_AUTO_SELECTED: &str = "AuthzUpstreamAutoSelected";

    // DefaultAuthConfig, BackendAuthConfig-<backend> and DiscoveredAuthConfig-<backend>; a config that is not
    // valid lends its own reason instead.

    /// The outgoing authentication could be converted.
    pub const CONVERSION_SUCCEEDED: &str = "ConversionSucceeded";
    /// The outgoing authentication could not be converted, or its config does not exist.
    pub const CONVERSION_FAILED: &str = "ConversionFailed";
    /// It is open which of several upstreams lends the subject token.
    pub const AMBIGUOUS_SUBJECT_PROVIDER: &str = "AmbiguousSubjectProvider";

    // Ready as the operator sees it; also DeploymentReady, DeploymentNotReady and DeploymentFailed.

    /// Pods run, some backends do not. Also of Degraded, where the vMCP process saw slow backends.
    pub const BACKENDS_DEGRADED: &str = "BackendsDegraded";
    /// Pods run, no backend can be reached.
    pub const BACKENDS_UNAVAILABLE: &str = "BackendsUnavailable";
    /// Pods run, no backend could be counted.
    pub const BACKENDS_UNKNOWN: &str = "BackendsUnknown";

    // Ready and BackendsDiscovered as the vMCP process sees them.

    /// Every backend can be reached, or none is configured.
    pub const ALL_BACKENDS_ROUTABLE: &str = "AllBackendsRoutable";
    /// The first health checks are still under way.
    pub const BACKENDS_PENDING: &str = "BackendsPending";
    /// No backend can be reached.
    pub const NO_ROUTABLE_BACKENDS: &str = "NoRoutableBackends";
    /// Some backends can be reached, others not.
    pub const SOME_BACKENDS_UNHEALTHY: &str = "SomeBackendsUnhealthy";
    /// The process has looked for backends.
    pub const BACKENDS_DISCOVERED: &str = "BackendsDiscovered";
}
