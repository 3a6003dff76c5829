//! What the operator reads; the chart sets most of it.

use crate::constants::constants;

constants! {
    /// The namespace of the pod. The proxy runner falls back to it as well.
    pub const POD_NAMESPACE: &str = "POD_NAMESPACE";
    /// The namespaces to watch, separated by commas; unset or empty means all.
    pub const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";
    /// The image of proxy pods.
    pub const RUNNER_IMAGE: &str = "TOOLHIVE_RUNNER_IMAGE";
    /// The image of vMCP pods.
    pub const VIRTUAL_MCP_IMAGE: &str = "VMCP_IMAGE";
    /// The image of registry pods.
    pub const REGISTRY_API_IMAGE: &str = "TOOLHIVE_REGISTRY_API_IMAGE";
    /// The address on which proxies listen.
    pub const PROXY_HOST: &str = "TOOLHIVE_PROXY_HOST";
    /// Image pull secrets for every workload, separated by commas.
    pub const DEFAULT_IMAGE_PULL_SECRETS: &str = "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS";
    /// The session store of workloads that name none.
    pub const DEFAULT_REDIS_ADDRESS: &str = "TOOLHIVE_DEFAULT_REDIS_ADDR";
    /// The Secret with the password of that store.
    pub const DEFAULT_REDIS_SECRET_NAME: &str = "TOOLHIVE_DEFAULT_REDIS_SECRET_NAME";
    /// The key in that Secret; [`REDIS_SECRET_KEY`] when unset.
    pub const DEFAULT_REDIS_SECRET_KEY: &str = "TOOLHIVE_DEFAULT_REDIS_SECRET_KEY";
    /// Whether stored objects are migrated. Must be a boolean when it is set.
    pub const ENABLE_STORAGE_VERSION_MIGRATOR: &str = "TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR";
    /// Whether the cluster is OpenShift; asked of the cluster when unset. The proxy runner reads it as well.
    pub const OPENSHIFT: &str = "OPERATOR_OPENSHIFT";
    /// `true` turns the update check off.
    pub const SKIP_UPDATE_CHECK: &str = "TOOLHIVE_SKIP_UPDATE_CHECK";
    /// `false` asks for JSON logs. Set on every pod.
    pub const UNSTRUCTURED_LOGS: &str = "UNSTRUCTURED_LOGS";

    // Set by the chart because tests compare its output; read by nobody.

    /// A remnant.
    pub const USE_CONFIG_MAP: &str = "TOOLHIVE_USE_CONFIGMAP";
    /// A remnant.
    pub const ENABLE_EXPERIMENTAL_FEATURES: &str = "ENABLE_EXPERIMENTAL_FEATURES";
    /// A knob of the reference's language runtime.
    pub const GO_MEMORY_LIMIT: &str = "GOMEMLIMIT";
    /// A knob of the reference's language runtime.
    pub const GO_GARBAGE_COLLECTION: &str = "GOGC";
}

/// The key of the Redis password when [`DEFAULT_REDIS_SECRET_KEY`] is unset.
pub const REDIS_SECRET_KEY: &str = "redis-password";
