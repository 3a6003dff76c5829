//! Finalizers, one per kind that has one. The others are cleaned up by garbage collection alone.

use crate::constants::constants;

constants! {
    /// Of MCPServer: until StatefulSet, backend Services and RunConfig are gone.
    pub const MCP_SERVER: &str = "mcpserver.toolhive.stacklok.dev/finalizer";
    /// Of MCPRegistry.
    pub const MCP_REGISTRY: &str = "mcpregistry.toolhive.stacklok.dev/finalizer";
    /// Of EmbeddingServer.
    pub const EMBEDDING_SERVER: &str = "embeddingserver.toolhive.stacklok.dev/finalizer";
    /// Of MCPGroup: deletion is not blocked by members.
    pub const MCP_GROUP: &str = "toolhive.stacklok.dev/mcpgroup-finalizer";
    /// Of MCPOIDCConfig: until no workload refers to it.
    pub const MCP_OIDC_CONFIG: &str = "mcpoidcconfig.toolhive.stacklok.dev/finalizer";
    /// Of MCPExternalAuthConfig: until no workload refers to it.
    pub const MCP_EXTERNAL_AUTH_CONFIG: &str = "mcpexternalauthconfig.toolhive.stacklok.dev/finalizer";
    /// Of MCPAuthzConfig: until no workload refers to it.
    pub const MCP_AUTHZ_CONFIG: &str = "mcpauthzconfig.toolhive.stacklok.dev/finalizer";
    /// Of MCPToolConfig: until no workload refers to it.
    pub const MCP_TOOL_CONFIG: &str = "toolhive.stacklok.dev/toolconfig-finalizer";
    /// Of MCPTelemetryConfig: until no workload refers to it.
    pub const MCP_TELEMETRY_CONFIG: &str = "mcptelemetryconfig.toolhive.stacklok.dev/finalizer";
    /// Of MCPWebhookConfig: until no workload refers to it.
    pub const MCP_WEBHOOK_CONFIG: &str = "mcpwebhookconfig.toolhive.stacklok.dev/finalizer";
}
