//! EmbeddingServer: a StatefulSet that turns text into vectors. Its children have its name.

use super::service_url;

/// The container, and the one a pod template customises.
pub const CONTAINER: &str = "embedding";
/// Where the probes look.
pub const HEALTH_PATH: &str = "/health";
/// The volume and claim template of the model cache.
pub const MODEL_CACHE_VOLUME: &str = "model-cache";
/// Where the model cache is mounted.
pub const MODEL_CACHE_DIRECTORY: &str = "/data";

/// The StatefulSet, and the Service name it claims.
pub fn stateful_set(name: &str) -> String {
    name.to_owned()
}

/// The Service. A Service name has at most 63 characters.
pub fn service(name: &str) -> String {
    name.to_owned()
}

/// The claim that the StatefulSet makes for the model cache of one replica. It outlives the StatefulSet.
pub fn model_cache_claim(name: &str, ordinal: u32) -> String {
    format!("{MODEL_CACHE_VOLUME}-{name}-{ordinal}")
}

/// What `status.url` says.
pub fn url(name: &str, namespace: &str, port: i32) -> String {
    service_url(&service(name), namespace, port)
}
