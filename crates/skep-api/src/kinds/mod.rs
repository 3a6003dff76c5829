//! The fourteen kinds, one file each, and the concepts several of them share.

pub mod audit;
pub mod auth_server;
pub mod authz;
pub mod ca_bundle;
pub mod config_status;
pub mod embedding_server;
pub mod header_forward;
pub mod mcp_authz_config;
pub mod mcp_external_auth_config;
pub mod mcp_group;
pub mod mcp_oidc_config;
pub mod mcp_registry;
pub mod mcp_remote_proxy;
pub mod mcp_server;
pub mod mcp_server_entry;
pub mod mcp_telemetry_config;
pub mod mcp_tool_config;
pub mod mcp_webhook_config;
pub mod outgoing_auth;
pub mod overrides;
pub mod rate_limit;
pub mod references;
pub mod resources;
pub mod session_storage;
pub mod tool_override;
pub mod transport;
pub mod virtual_mcp_composite_tool_definition;
pub mod virtual_mcp_server;

pub use embedding_server::EmbeddingServer;
pub use mcp_authz_config::MCPAuthzConfig;
pub use mcp_external_auth_config::MCPExternalAuthConfig;
pub use mcp_group::MCPGroup;
pub use mcp_oidc_config::MCPOIDCConfig;
pub use mcp_registry::MCPRegistry;
pub use mcp_remote_proxy::MCPRemoteProxy;
pub use mcp_server::MCPServer;
pub use mcp_server_entry::MCPServerEntry;
pub use mcp_telemetry_config::MCPTelemetryConfig;
pub use mcp_tool_config::MCPToolConfig;
pub use mcp_webhook_config::MCPWebhookConfig;
pub use virtual_mcp_composite_tool_definition::VirtualMCPCompositeToolDefinition;
pub use virtual_mcp_server::VirtualMCPServer;

#[cfg(test)]
mod tests;
