//! Annotations that the operator writes or reads. Two domains are in use; both are part of the contract.

use crate::constants::constants;

constants! {
    // On MCPServer, written by users unless said otherwise; RESTARTED_AT also on the proxy's pod template.

    /// When a restart was asked for, in RFC 3339.
    pub const RESTARTED_AT: &str = "mcpserver.toolhive.stacklok.dev/restarted-at";
    /// How to restart: [`RESTART_ROLLING`] or [`RESTART_IMMEDIATE`].
    pub const RESTART_STRATEGY: &str = "mcpserver.toolhive.stacklok.dev/restart-strategy";
    /// The request that was carried out last. Written by the operator.
    pub const LAST_PROCESSED_RESTART: &str = "mcpserver.toolhive.stacklok.dev/last-processed-restart";

    // On ConfigMaps and Secrets.

    /// The checksum of a ConfigMap's content.
    pub const CONTENT_CHECKSUM: &str = "toolhive.stacklok.dev/content-checksum";
    /// What a Secret is for; see [`PURPOSE_SESSION_BINDING`].
    pub const PURPOSE: &str = "toolhive.stacklok.dev/purpose";

    // On pod templates.

    /// The checksum of the configuration that the pods run with; a new one rolls them.
    pub const RUN_CONFIG_CHECKSUM: &str = "toolhive.stacklok.dev/runconfig-checksum";
    /// The generation of the MCPServer that the pods were made for. Also on the backend's template.
    pub const MCP_SERVER_GENERATION: &str = "toolhive.stacklok.dev/mcpserver-generation";
    /// The hash of the whole spec of an MCPRegistry.
    pub const CONFIG_HASH: &str = "toolhive.stacklok.dev/config-hash";
    /// On the pod template of a stdio backend with several replicas, written by users: `true` gives each session a pod.
    pub const STDIO_PROCESS_PER_SESSION: &str = "toolhive.stacklok.dev/stdio-process-per-session";
    /// Written by `kubectl rollout restart`; always carried over.
    pub const KUBECTL_RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

    // On StatefulSets.

    /// Which container of each pod was taken for a session last, and by which proxy. Written by proxies where
    /// [`STDIO_PROCESS_PER_SESSION`] counts.
    pub const STDIO_PROCESSES_TAKEN: &str = "toolhive.stacklok.dev/stdio-processes-taken";

    // On anything.

    /// Written by `kubectl apply`: the object as it was applied. Never logged.
    pub const KUBECTL_LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

    // On Deployments.

    /// The hash of the user's pod template; removed with it.
    pub const POD_TEMPLATE_SPEC_HASH: &str = "toolhive.stacklok.io/podtemplatespec-hash";
    /// The hash of the image pull secrets of a VirtualMCPServer; removed with them.
    pub const IMAGE_PULL_SECRETS_HASH: &str = "toolhive.stacklok.io/imagepullsecrets-hash";
}

/// The default of [`RESTART_STRATEGY`]: one pod after the other.
pub const RESTART_ROLLING: &str = "rolling";
/// The other value of [`RESTART_STRATEGY`]: all pods at once.
pub const RESTART_IMMEDIATE: &str = "immediate";
/// The value of [`PURPOSE`] on the Secret that binds sessions of a VirtualMCPServer.
pub const PURPOSE_SESSION_BINDING: &str = "hmac-secret-for-session-token-binding";
/// Annotations of a workload that do not become metadata of a vMCP backend begin with one of these.
pub const FOREIGN_PREFIXES: [&str; 4] =
    ["kubectl.kubernetes.io/", "kubernetes.io/", "deployment.kubernetes.io/", "k8s.io/"];

/// The downward API path of an annotation of the pod.
pub fn field_path(annotation: &str) -> String {
    format!("metadata.annotations['{annotation}']")
}
