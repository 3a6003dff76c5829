//! MCPRemoteProxy: a proxy in front of a server outside the cluster.
//!
//! The parts shared with MCPServer are in [`super::proxy_pod`].

use super::service_url;

/// What stands where MCPServer passes its image: the runner wants a positional argument.
pub const PLACEHOLDER_IMAGE: &str = "placeholder-for-remote-proxy";

/// The Deployment of the proxy.
pub fn deployment(name: &str) -> String {
    name.to_owned()
}

/// The Service of the proxy. A Service name has at most 63 characters.
pub fn proxy_service(name: &str) -> String {
    format!("mcp-{name}-remote-proxy")
}

/// ServiceAccount, Role and RoleBinding of the proxy, created when the spec names no account.
pub fn proxy_runner(name: &str) -> String {
    format!("{name}-remote-proxy-runner")
}

/// What `status.url` says.
pub fn url(name: &str, namespace: &str, port: i32) -> String {
    service_url(&proxy_service(name), namespace, port)
}
