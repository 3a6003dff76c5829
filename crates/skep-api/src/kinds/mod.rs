//! The fourteen kinds, one file each, and the concepts several of them share.

pub mod audit;
pub mod authz;
pub mod ca_bundle;
pub mod config_status;
pub mod embedding_server;
pub mod header_forward;
pub mod mcp_group;
pub mod mcp_registry;
pub mod mcp_remote_proxy;
pub mod mcp_server;
pub mod mcp_server_entry;
pub mod overrides;
pub mod rate_limit;
pub mod references;
pub mod resources;
pub mod session_storage;
pub mod transport;

pub use embedding_server::EmbeddingServer;
pub use mcp_group::MCPGroup;
pub use mcp_registry::MCPRegistry;
pub use mcp_remote_proxy::MCPRemoteProxy;
pub use mcp_server::MCPServer;
pub use mcp_server_entry::MCPServerEntry;

#[cfg(test)]
mod tests;
