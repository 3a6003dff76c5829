//! The fourteen kinds, one file each, and the concepts several of them share.

pub mod audit;
pub mod auth_server;
pub mod authz;
pub mod ca_bundle;
pub mod config_status;
pub mod header_forward;
pub mod mcp_group;
pub mod mcp_remote_proxy;
pub mod overrides;
pub mod rate_limit;
pub mod references;
pub mod resources;
pub mod session_storage;
pub mod tool_override;
pub mod transport;
pub mod virtual_mcp_composite_tool_definition;
pub mod virtual_mcp_server;

pub use mcp_group::MCPGroup;
pub use mcp_remote_proxy::MCPRemoteProxy;
pub use virtual_mcp_composite_tool_definition::VirtualMCPCompositeToolDefinition;
pub use virtual_mcp_server::VirtualMCPServer;
