//! MCPRegistry: the registry API server and the password file it may need.

/// The container, and the one a pod template customises.
pub const CONTAINER: &str = "registry-api";
/// The port of container and Service.
pub const PORT: i32 = 8080;
/// The port of the probes.
pub const HEALTH_PORT: i32 = 8081;
/// Where the liveness probe looks.
pub const HEALTH_PATH: &str = "/health";
/// Where the readiness probe looks.
pub const READINESS_PATH: &str = "/readiness";

/// The volume of the configuration. Users may not use this name.
pub const CONFIG_VOLUME: &str = "registry-server-config";
/// Where the configuration is mounted.
pub const CONFIG_DIRECTORY: &str = "/config";
/// The key and file of the configuration.
pub const CONFIG_KEY: &str = "config.yaml";
/// The path that the server gets as its `--config`.
pub const CONFIG_FILE: &str = "/config/config.yaml";

/// The volume of the Secret with the password file. Reserved while spec.pgpassSecretRef is set.
pub const PASSWORD_SECRET_VOLUME: &str = "pgpass-secret";
/// The empty volume into which the password file is copied. Reserved while spec.pgpassSecretRef is set.
pub const PASSWORD_VOLUME: &str = "pgpass";
/// The init container that copies the password file. Reserved while spec.pgpassSecretRef is set.
pub const PASSWORD_INIT_CONTAINER: &str = "setup-pgpass";
/// The name of the password file in every volume.
pub const PASSWORD_KEY: &str = ".pgpass";
/// Where the init container finds the Secret.
pub const PASSWORD_SECRET_DIRECTORY: &str = "/secret";
/// Where the init container finds the empty volume.
pub const PASSWORD_DIRECTORY: &str = "/pgpass";
/// Where the server finds the password file.
pub const PASSWORD_FILE: &str = "/home/appuser/.pgpass";

/// Deployment and Service. A Service name has at most 63 characters.
pub fn api(name: &str) -> String {
    format!("{name}-api")
}

/// The ConfigMap of the configuration.
pub fn config_map(name: &str) -> String {
    format!("{name}-registry-server-config")
}

/// ServiceAccount, Role and RoleBinding.
pub fn service_account(name: &str) -> String {
    format!("{name}-registry-api")
}

/// What `status.url` says: the short form of the host, unlike the other kinds.
pub fn url(name: &str, namespace: &str) -> String {
    format!("http://{}.{namespace}:{PORT}", api(name))
}
