//! Where the sessions of clients are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::SecretKeyRef;

/// Where the sessions of clients are kept. Several replicas need a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.provider == 'redis' ? has(self.address) : true", "message": "address is required" },
]))]
pub struct SessionStorage {
    /// The address of the Redis server as host:port. Required when provider is redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address: Option<String>,
    /// The number of the Redis database.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub db: i32,
    /// What the keys in Redis begin with. It must end with a colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// The key of a Secret that holds the Redis password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeyRef>,
    /// The kind of store.
    pub provider: SessionProvider,
}

/// Kinds of session stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionProvider {
    /// The memory of each replica; sessions end with it.
    #[default]
    Memory,
    /// A Redis server that all replicas share.
    Redis,
}

/// Whether a Service sends one client to one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionAffinity {
    /// Requests from one address go to one replica.
    #[default]
    ClientIP,
    /// Requests go to any replica.
    None,
}
