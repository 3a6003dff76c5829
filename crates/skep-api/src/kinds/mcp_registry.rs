//! MCPRegistry: a registry server. The kind is on its way out, and is still served.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::{ImagePullSecret, SecretKeySelector};
use crate::conditions::Condition;
use crate::kind::{Column, Versions, kind};
use crate::raw::{RawObject, RawValue};
use crate::sensitive::Sensitive;

/// What the API server tells whoever writes an MCPRegistry.
pub const DEPRECATION_WARNING: &str = "MCPRegistry is deprecated and will be removed in a future release; \
    install the ToolHive registry server via the toolhive-registry-server Helm chart \
    (https://github.com/stacklok/toolhive-registry-server) instead";

kind! {
    /// MCPRegistry runs a registry server, which lists MCP servers for clients to find. The kind is deprecated:
    /// install the registry server with its own Helm chart instead.
    MCPRegistry(MCPRegistrySpec, MCPRegistryStatus) {
        plural: "mcpregistries",
        short_names: &["mcpreg", "registry"],
        versions: Versions::Deprecated(DEPRECATION_WARNING),
        columns: &[
            Column::string("Status", ".status.phase"),
            Column::string("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column::integer("Replicas", ".status.readyReplicas"),
            Column::string("URL", ".status.url"),
            Column::AGE,
        ],
        scale: None,
    }
}

/// The configuration of the registry server, and what its pod needs to run with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRegistrySpec {
    /// The configuration file of the registry server. It is handed over as it stands; the server finds it at
    /// `/config/config.yaml`.
    #[serde(rename = "configYAML")]
    #[schemars(length(min = 1))]
    pub config_yaml: Sensitive,
    /// A name for people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Secrets with which the images of the pod are pulled. The ServiceAccount gets them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Vec<ImagePullSecret>,
    /// The key of a Secret that holds a PostgreSQL password file. The registry server finds it through the variable
    /// PGPASSFILE, with the file mode that PostgreSQL demands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pgpass_secret_ref: Option<SecretKeySelector>,
    /// A pod template for the registry server. The server's own settings are merged into it, and what stands here wins. The server's
    /// container is named `registry-api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<RawObject>,
    /// Mounts to add to the registry server's container, each as in a pod's container. No two mounts may have the
    /// same path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-preserve-unknown-fields" = true))]
    pub volume_mounts: Vec<RawValue>,
    /// Volumes to add to the pod, each as in a pod's spec. The name `registry-server-config` is taken, and so are
    /// `pgpass-secret` and `pgpass` when pgpassSecretRef is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-preserve-unknown-fields" = true))]
    pub volumes: Vec<RawValue>,
}

/// What became of the registry server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPRegistryStatus {
    /// What is known about the registry server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The phase in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The life of the registry server in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<MCPRegistryPhase>,
    /// How many pods of the registry server are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The address of the registry server inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The life of a registry server in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MCPRegistryPhase {
    /// The registry server is not up yet.
    #[default]
    Pending,
    /// The registry server is up.
    Ready,
    /// The registry server cannot be run; the conditions say why.
    Failed,
    /// The object is being deleted.
    Terminating,
}
