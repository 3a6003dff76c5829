//! Names of everything that is derived from an object: children, containers, keys, paths, hosts.
//!
//! The functions are pure and total: they join strings and check nothing. Whether a result is short enough for what
//! it names (63 characters for a label, a Service or a volume, 253 for most other objects) is decided where the
//! object is validated; functions whose input the contract limits say so.

pub mod annotations;
pub mod auth_server;
pub mod ca_bundle;
pub mod embedding_server;
pub mod env;
pub mod events;
pub mod field_managers;
pub mod finalizers;
pub mod labels;
pub mod mcp_registry;
pub mod mcp_remote_proxy;
pub mod mcp_server;
pub mod operator;
pub mod proxy_pod;
pub mod redis;
pub mod service_account_files;
pub mod virtual_mcp_server;
pub mod webhook_secret;

#[cfg(test)]
mod tests;

/// Longest name of a volume, a Service or a label value.
pub const LABEL_LIMIT: usize = 63;
/// Longest name of most objects.
pub const OBJECT_NAME_LIMIT: usize = 253;

/// The name of the one port that every container and Service of the operator has.
pub const PORT_NAME: &str = "http";

/// The host name of a Service inside the cluster.
pub fn service_host(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.svc.cluster.local")
}

/// The address of a Service inside the cluster, without a path.
pub fn service_url(service: &str, namespace: &str, port: i32) -> String {
    format!("http://{}:{port}", service_host(service, namespace))
}

/// The OAuth resource of a workload whose reference names none: the address of its Service.
///
/// An audience that equals the address built from the workload's own name keeps that one, which older
/// configurations rely on although no Service answers there.
pub fn default_resource_url(service: &str, workload: &str, namespace: &str, port: i32, audience: &str) -> String {
    let by_workload = service_url(workload, namespace, port);
    if audience == by_workload { by_workload } else { service_url(service, namespace, port) }
}
