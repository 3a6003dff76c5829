//! The proxy pod, which MCPServer and MCPRemoteProxy have in common.

/// The only container of the pod, and the one a pod template of MCPRemoteProxy customises.
pub const CONTAINER: &str = "toolhive";
/// Where the probes look.
pub const HEALTH_PATH: &str = "/health";

/// The volume of the RunConfig.
pub const RUN_CONFIG_VOLUME: &str = "runconfig";
/// Where the RunConfig is mounted: the whole directory, so that the file follows the ConfigMap.
pub const RUN_CONFIG_DIRECTORY: &str = "/etc/runconfig";
/// The key of the RunConfig in its ConfigMap, and the name of the file.
pub const RUN_CONFIG_KEY: &str = "runconfig.json";
/// Where the proxy runner looks for its RunConfig; the first that exists counts.
pub const RUN_CONFIG_PATHS: [&str; 3] =
    ["/etc/runconfig/runconfig.json", "/etc/toolhive/runconfig.json", "./runconfig.json"];

/// The volume of the policies of spec.authzConfig. Policies of an MCPAuthzConfig are not mounted.
pub const AUTHZ_VOLUME: &str = "authz-config";
/// Where the policies are mounted.
pub const AUTHZ_DIRECTORY: &str = "/etc/toolhive/authz";
/// The file of the policies, the key in the ConfigMap of inline policies, and the default key in one of the user.
pub const AUTHZ_KEY: &str = "authz.json";

/// The argument before the pod patch, which the runner applies to the backend's pods.
pub const POD_PATCH_FLAG: &str = "--k8s-pod-patch=";

/// The ConfigMap of the RunConfig. An MCPServer and an MCPRemoteProxy of one name share this name.
pub fn run_config(name: &str) -> String {
    format!("{name}-runconfig")
}

/// The ConfigMap of inline policies. An MCPServer and an MCPRemoteProxy of one name share this name.
pub fn inline_authz(name: &str) -> String {
    format!("{name}-authz-inline")
}
