//! Labels of children, and the selectors made from them.
//!
//! A label value has at most 63 characters, so an object with a longer name cannot have children.

use std::collections::BTreeMap;

use super::{mcp_registry, operator};
use crate::constants::constants;
pub use crate::crd::AUTO_MIGRATE_LABEL;

/// A set of labels, in the order in which they are written.
pub type Labels = BTreeMap<String, String>;

constants! {
    // Recommended by Kubernetes.

    /// Which kind the pods belong to; on backends the name of the MCPServer.
    pub const APP: &str = "app";
    /// Which kind the object belongs to.
    pub const NAME: &str = "app.kubernetes.io/name";
    /// Which object of the kind the object belongs to.
    pub const INSTANCE: &str = "app.kubernetes.io/instance";
    /// The role of the object.
    pub const COMPONENT: &str = "app.kubernetes.io/component";
    /// Who looks after the object.
    pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
    /// The application the object is part of; on the operator itself.
    pub const PART_OF: &str = "app.kubernetes.io/part-of";

    // Plain words, from the time of containers.

    /// `true` on everything that belongs to a server.
    pub const TOOLHIVE: &str = "toolhive";
    /// The name of the server.
    pub const TOOLHIVE_NAME: &str = "toolhive-name";
    /// The name of the server, on backends.
    pub const TOOLHIVE_BASENAME: &str = "toolhive-basename";
    /// The transport of the backend.
    pub const TOOLHIVE_TRANSPORT: &str = "toolhive-transport";
    /// The port of the proxy, on backends.
    pub const TOOLHIVE_PORT: &str = "toolhive-port";

    // In the domain of the operator, on ConfigMaps and registry children.

    /// The role of a ConfigMap.
    pub const CONFIG_COMPONENT: &str = "toolhive.stacklok.io/component";
    /// The MCPServer that a ConfigMap belongs to.
    pub const CONFIG_MCP_SERVER: &str = "toolhive.stacklok.io/mcp-server";
    /// The MCPRemoteProxy that a ConfigMap belongs to.
    pub const CONFIG_MCP_REMOTE_PROXY: &str = "toolhive.stacklok.io/mcp-remote-proxy";
    /// The VirtualMCPServer that a ConfigMap belongs to.
    pub const CONFIG_VIRTUAL_MCP_SERVER: &str = "toolhive.stacklok.io/virtual-mcp-server";
    /// Who looks after a ConfigMap.
    pub const CONFIG_MANAGED_BY: &str = "toolhive.stacklok.io/managed-by";
    /// `inline` on a ConfigMap of inline policies.
    pub const AUTHZ: &str = "toolhive.stacklok.io/authz";
    /// The MCPRegistry that a child belongs to.
    pub const REGISTRY_NAME: &str = "toolhive.stacklok.io/registry-name";
}

/// The value of [`APP`] and [`NAME`] on children of an MCPServer.
pub const MCP_SERVER: &str = "mcpserver";
/// The value of [`APP`] and [`NAME`] on children of an MCPRemoteProxy.
pub const MCP_REMOTE_PROXY: &str = "mcpremoteproxy";
/// The value of [`APP`] and [`NAME`] on children of a VirtualMCPServer.
pub const VIRTUAL_MCP_SERVER: &str = "virtualmcpserver";
/// The value of [`NAME`] on children of an EmbeddingServer.
pub const EMBEDDING_SERVER: &str = "embeddingserver";
/// The value of [`COMPONENT`] on children of an EmbeddingServer.
pub const COMPONENT_EMBEDDING_SERVER: &str = "embedding-server";
/// The value of [`COMPONENT`] on children of an MCPRegistry.
pub const COMPONENT_REGISTRY_API: &str = mcp_registry::CONTAINER;
/// The value of [`COMPONENT`] on the Secret that binds sessions of a VirtualMCPServer.
pub const COMPONENT_SESSION_SECURITY: &str = "session-security";
/// The value of [`CONFIG_COMPONENT`] on a RunConfig.
pub const COMPONENT_RUN_CONFIG: &str = "run-config";
/// The value of [`CONFIG_COMPONENT`] on the configuration of a VirtualMCPServer.
pub const COMPONENT_VIRTUAL_MCP_CONFIG: &str = "vmcp-config";
/// The value of [`AUTHZ`].
pub const AUTHZ_INLINE: &str = "inline";
/// The value of [`TOOLHIVE`] and [`AUTO_MIGRATE_LABEL`].
pub const TRUE: &str = "true";

/// Base labels and selector of an MCPServer's proxy.
pub fn mcp_server(name: &str) -> Labels {
    workload(MCP_SERVER, name)
}

/// Base labels and selector of an MCPRemoteProxy.
pub fn mcp_remote_proxy(name: &str) -> Labels {
    workload(MCP_REMOTE_PROXY, name)
}

/// Base labels and selector of a VirtualMCPServer.
pub fn virtual_mcp_server(name: &str) -> Labels {
    workload(VIRTUAL_MCP_SERVER, name)
}

/// Base labels and selector of an EmbeddingServer.
pub fn embedding_server(name: &str) -> Labels {
    set([
        (NAME, EMBEDDING_SERVER),
        (INSTANCE, name),
        (COMPONENT, COMPONENT_EMBEDDING_SERVER),
        (MANAGED_BY, operator::NAME),
    ])
}

/// Labels of a child of an MCPRegistry; the ConfigMap has none.
pub fn mcp_registry_child(registry: &str, child: &str) -> Labels {
    set([(NAME, child), (COMPONENT, COMPONENT_REGISTRY_API), (MANAGED_BY, operator::NAME), (REGISTRY_NAME, registry)])
}

/// Selector of an MCPRegistry's Deployment and Service.
pub fn mcp_registry_selector(registry: &str) -> Labels {
    set([(NAME, &mcp_registry::api(registry)), (COMPONENT, COMPONENT_REGISTRY_API)])
}

/// Labels of the RunConfig of an MCPServer.
pub fn mcp_server_run_config(name: &str) -> Labels {
    config_map(COMPONENT_RUN_CONFIG, CONFIG_MCP_SERVER, name)
}

/// Labels of the RunConfig of an MCPRemoteProxy.
pub fn mcp_remote_proxy_run_config(name: &str) -> Labels {
    config_map(COMPONENT_RUN_CONFIG, CONFIG_MCP_REMOTE_PROXY, name)
}

/// Labels of the configuration of a VirtualMCPServer.
pub fn virtual_mcp_server_config(name: &str) -> Labels {
    config_map(COMPONENT_VIRTUAL_MCP_CONFIG, CONFIG_VIRTUAL_MCP_SERVER, name)
}

/// Labels of the ConfigMap of inline policies: the base labels of the workload and one more.
pub fn inline_authz(base: Labels) -> Labels {
    let mut labels = base;
    labels.insert(AUTHZ.to_owned(), AUTHZ_INLINE.to_owned());
    labels
}

/// Labels of the Secret that binds sessions of a VirtualMCPServer.
pub fn session_secret(name: &str) -> Labels {
    set([
        (NAME, VIRTUAL_MCP_SERVER),
        (INSTANCE, name),
        (COMPONENT, COMPONENT_SESSION_SECURITY),
        (MANAGED_BY, operator::NAME),
    ])
}

/// The `container_labels` of a RunConfig. `port` is the port of the proxy.
pub fn container(name: &str, transport: &str, port: i32) -> Labels {
    set([
        (TOOLHIVE, TRUE),
        (TOOLHIVE_NAME, name),
        (TOOLHIVE_BASENAME, name),
        (TOOLHIVE_TRANSPORT, transport),
        (TOOLHIVE_PORT, &port.to_string()),
    ])
}

/// Labels of StatefulSet, pods and Services of a backend: those of the RunConfig, and what the runner insists on.
pub fn backend(container_labels: Labels, container_name: &str) -> Labels {
    let mut labels = container_labels;
    labels.extend(set([(APP, container_name), (TOOLHIVE, TRUE)]));
    labels
}

/// Selector of the pods of a backend.
pub fn backend_selector(container_name: &str) -> Labels {
    set([(APP, container_name)])
}

/// A selector in the form in which a list request takes it.
pub fn selector_text(labels: &Labels) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn workload(kind: &str, name: &str) -> Labels {
    set([(APP, kind), (NAME, kind), (INSTANCE, name), (TOOLHIVE, TRUE), (TOOLHIVE_NAME, name)])
}

fn config_map(component: &str, owner_label: &str, owner: &str) -> Labels {
    set([(CONFIG_COMPONENT, component), (owner_label, owner), (CONFIG_MANAGED_BY, operator::NAME)])
}

fn set<const COUNT: usize>(pairs: [(&str, &str); COUNT]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
