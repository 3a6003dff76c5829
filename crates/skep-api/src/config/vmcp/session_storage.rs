//! Where the sessions of clients are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::session_storage::SessionProvider;
use crate::raw::RawObject;

/// Where the sessions of clients are kept. The password of a Redis server is not part of the document; it comes in
/// the variable THV_SESSION_REDIS_PASSWORD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStorageSettings {
    /// The address of the Redis server as host:port. Needed when provider is redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The number of the Redis database. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub db: Option<i32>,
    /// What the keys in Redis begin with. It must end with a colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// The kind of store.
    pub provider: SessionProvider,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
