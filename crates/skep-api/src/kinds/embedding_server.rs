//! EmbeddingServer: a server that turns text into vectors, for the tool search of VirtualMCPServers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::overrides::{EnvVar, MetadataOverrides};
use super::references::SecretKeyRef;
use super::resources::ResourceRequirements;
use super::transport;
use crate::conditions::Condition;
use crate::kind::{Column, Versions, kind};
use crate::raw::RawObject;

kind! {
    /// EmbeddingServer runs a model that turns text into vectors. A VirtualMCPServer that names it in
    /// spec.embeddingServerRef finds tools by the meaning of a request.
    EmbeddingServer(EmbeddingServerSpec, EmbeddingServerStatus) {
        plural: "embeddingservers",
        short_names: &["emb", "embedding"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[
            Column::string("Status", ".status.phase"),
            Column::string("Model", ".spec.model"),
            Column::integer("Ready", ".status.readyReplicas"),
            Column::string("URL", ".status.url"),
            Column::AGE,
        ],
        scale: None,
    }
}

/// The container image of an embedding server when none is given.
pub const DEFAULT_IMAGE: &str = "ghcr.io/huggingface/text-embeddings-inference:cpu-latest";
/// The model of an embedding server when none is given.
pub const DEFAULT_MODEL: &str = "BAAI/bge-small-en-v1.5";
/// The size of a model cache when none is given.
pub const DEFAULT_CACHE_SIZE: &str = "10Gi";
/// How many embedding servers run when nothing else is said.
pub const DEFAULT_REPLICAS: i32 = 1;

/// The model, and the server that runs it.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerSpec {
    /// Arguments to add to those that Skep gives the server, which are the model and the port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub args: Vec<String>,
    /// Environment variables to add to the server's container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// The key of a Secret that holds a Hugging Face token. Set it when the model is private or gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hf_token_secret_ref: Option<SecretKeyRef>,
    /// The container image. It must take the arguments of Hugging Face's text-embeddings-inference.
    #[serde(default = "default_image")]
    #[default(default_image())]
    pub image: String,
    /// When the image is pulled.
    #[serde(default)]
    pub image_pull_policy: ImagePullPolicy,
    /// The name of the model on Hugging Face.
    #[serde(default = "default_model")]
    #[default(default_model())]
    pub model: String,
    /// A volume that keeps the model, so that a restarted server need not download it again. Without it nothing is
    /// kept. The volume of a server that exists already does not follow later changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_cache: Option<ModelCache>,
    /// A pod template that is merged over the one of the server's pods. The server's container is named `embedding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<RawObject>,
    /// The port of the server and of its Service.
    #[serde(default = "transport::default_port")]
    #[default(transport::DEFAULT_PORT)]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// How many servers run. Each has a model cache of its own.
    #[serde(default = "default_replicas")]
    #[default(DEFAULT_REPLICAS)]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Labels and annotations to add to the objects created for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_overrides: Option<EmbeddingServerOverrides>,
    /// CPU and memory of the server's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

fn default_image() -> String {
    DEFAULT_IMAGE.to_owned()
}

fn default_model() -> String {
    DEFAULT_MODEL.to_owned()
}

fn default_replicas() -> i32 {
    DEFAULT_REPLICAS
}

/// When a container image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Whenever the container starts.
    Always,
    /// Never; the node must have it.
    Never,
    /// When the node does not have it.
    #[default]
    IfNotPresent,
}

/// A volume that keeps the downloaded model.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCache {
    /// How the volume may be mounted.
    #[serde(default)]
    pub access_mode: VolumeAccessMode,
    /// Whether there is a cache.
    #[serde(default = "enabled")]
    #[default(true)]
    pub enabled: bool,
    /// The size of the volume in Kubernetes quantity notation.
    #[serde(default = "default_cache_size")]
    #[default(default_cache_size())]
    pub size: String,
    /// The StorageClass of the volume. Defaults to the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

fn enabled() -> bool {
    true
}

fn default_cache_size() -> String {
    DEFAULT_CACHE_SIZE.to_owned()
}

/// How a volume may be mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeAccessMode {
    /// By one node, to read and write.
    #[default]
    ReadWriteOnce,
    /// By many nodes, to read and write.
    ReadWriteMany,
    /// By many nodes, to read.
    ReadOnlyMany,
}

/// Additions to the objects created for an embedding server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerOverrides {
    /// Additions to the claims of the model caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<MetadataOverrides>,
    /// Additions to the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<MetadataOverrides>,
    /// Additions to the StatefulSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetOverrides>,
}

/// Additions to a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetOverrides {
    /// Annotations to add to the StatefulSet. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels to add to the StatefulSet. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Labels and annotations to add to the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_metadata_overrides: Option<MetadataOverrides>,
}

/// What became of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddingServerStatus {
    /// What is known about the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The phase in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The life of the server in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<EmbeddingServerPhase>,
    /// How many servers are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The address of the server inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The life of an embedding server in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EmbeddingServerPhase {
    /// No pod of the server exists yet.
    #[default]
    Pending,
    /// The server has started and loads its model.
    Downloading,
    /// The server is up.
    Ready,
    /// The server cannot be run; the conditions say why.
    Failed,
    /// The object is being deleted.
    Terminating,
}
