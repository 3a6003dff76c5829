//! VirtualMCPServer and its vMCP process.

use super::service_url;

/// The only container of the pod, and the one a pod template customises.
pub const CONTAINER: &str = "vmcp";
/// The port of container and Service.
pub const PORT: i32 = 4483;
/// Where the liveness probe looks.
pub const HEALTH_PATH: &str = "/health";
/// Where the readiness probe looks.
pub const READINESS_PATH: &str = "/readyz";

/// The volume of the configuration.
pub const CONFIG_VOLUME: &str = "vmcp-config";
/// Where the configuration is mounted.
pub const CONFIG_DIRECTORY: &str = "/etc/vmcp-config";
/// The key and file of the configuration.
pub const CONFIG_KEY: &str = "config.yaml";
/// The key and file of the embedded auth server's configuration, beside [`CONFIG_KEY`].
pub const AUTH_SERVER_CONFIG_KEY: &str = "authserver-config.yaml";
/// The path that the process gets as its `--config`.
pub const CONFIG_FILE: &str = "/etc/vmcp-config/config.yaml";
/// The key in the Secret that binds sessions.
pub const HMAC_SECRET_KEY: &str = "hmac-secret";

/// The Deployment.
pub fn deployment(name: &str) -> String {
    name.to_owned()
}

/// The Service. A Service name has at most 63 characters.
pub fn service(name: &str) -> String {
    format!("vmcp-{name}")
}

/// The ConfigMap of the configuration.
pub fn config_map(name: &str) -> String {
    format!("{name}-vmcp-config")
}

/// The Secret that binds sessions.
pub fn hmac_secret(name: &str) -> String {
    format!("{name}-hmac-secret")
}

/// ServiceAccount, Role and RoleBinding, created when the spec names no account.
pub fn service_account(name: &str) -> String {
    format!("{name}-vmcp")
}

/// What `status.url` says.
pub fn url(name: &str, namespace: &str) -> String {
    service_url(&service(name), namespace, PORT)
}
