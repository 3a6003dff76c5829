//! MCPServer: the proxy that the operator creates and the backend that the proxy runner creates.
//!
//! The parts shared with MCPRemoteProxy are in [`super::proxy_pod`].

use super::{labels, service_url};
use crate::kinds::transport::RemoteTransport;

/// The container of the backend, and the one a pod template customises.
pub const BACKEND_CONTAINER: &str = "mcp";
/// The volume of a permission profile that comes from a ConfigMap.
pub const PERMISSION_PROFILE_VOLUME: &str = "permission-profile";
/// Where that profile is mounted.
pub const PERMISSION_PROFILE_DIRECTORY: &str = "/etc/toolhive/profiles";

/// The Deployment of the proxy.
pub fn deployment(name: &str) -> String {
    name.to_owned()
}

/// The Service of the proxy. A Service name has at most 63 characters.
pub fn proxy_service(name: &str) -> String {
    format!("mcp-{name}-proxy")
}

/// ServiceAccount, Role and RoleBinding of the proxy.
pub fn proxy_runner(name: &str) -> String {
    format!("{name}-proxy-runner")
}

/// The ServiceAccount of the backend when the spec names none.
pub fn backend_service_account(name: &str) -> String {
    format!("{name}-sa")
}

/// The StatefulSet of the backend, and the Service name it claims although no such Service exists.
pub fn stateful_set(name: &str) -> String {
    name.to_owned()
}

/// The Service through which the proxy reaches an HTTP backend; the proxy dials this short name. A Service name has
/// at most 63 characters.
pub fn backend_service(name: &str) -> String {
    format!("mcp-{name}")
}

/// The Service that gives the backend's pods their own names. A Service name has at most 63 characters.
pub fn backend_headless_service(name: &str) -> String {
    format!("mcp-{name}-headless")
}

/// The NetworkPolicy of the backend, where permission profiles are enforced.
pub fn network_policy(name: &str) -> String {
    format!("{name}-network")
}

/// The name of a port of the backend's Services.
pub fn backend_port(port: i32) -> String {
    format!("port-{port}")
}

/// Where the proxy sends requests for an HTTP backend.
pub fn backend_url(name: &str, port: i32) -> String {
    format!("http://{}:{port}", backend_service(name))
}

/// The file of a permission profile that comes from a ConfigMap.
pub fn permission_profile(key: &str) -> String {
    format!("{PERMISSION_PROFILE_DIRECTORY}/{key}")
}

/// What `status.url` says, for the transport that clients see.
///
/// The name needs no escaping in the fragment: object names consist of `a-z`, `0-9`, `-` and `.`.
pub fn url(name: &str, namespace: &str, port: i32, transport: RemoteTransport) -> String {
    let base = service_url(&proxy_service(name), namespace, port);
    match transport {
        RemoteTransport::Sse => format!("{base}/sse#{name}"),
        RemoteTransport::StreamableHttp => format!("{base}/mcp"),
    }
}

/// Whether the backend's selector `app=<name>` would match the proxy pods of other objects.
pub fn is_reserved(name: &str) -> bool {
    [labels::MCP_SERVER, labels::MCP_REMOTE_PROXY, labels::VIRTUAL_MCP_SERVER].contains(&name)
}
