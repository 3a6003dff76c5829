//! Where the embedded authorization server keeps clients, sessions and upstream tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::duration::DurationText;
use crate::kinds::references::SecretKeyRef;
use crate::names::auth_server::DEFAULT_SENTINEL_PORT;

/// Where clients, sessions and upstream tokens are kept. Several replicas need a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthServerStorage {
    /// The Redis server. Set it when type is redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStorage>,
    /// The kind of store.
    #[serde(rename = "type", default)]
    pub type_: AuthServerStorageType,
}

/// Kinds of stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthServerStorageType {
    /// The memory of the process: clients must register and users must sign in again after a restart.
    #[default]
    Memory,
    /// A Redis server that all replicas share.
    Redis,
}

/// How long a connection to Redis may take to open when nothing is said.
pub const DEFAULT_DIAL_TIMEOUT: &str = "5s";
/// How long an answer of Redis may take when nothing is said.
pub const DEFAULT_READ_TIMEOUT: &str = "3s";
/// How long sending a command to Redis may take when nothing is said.
pub const DEFAULT_WRITE_TIMEOUT: &str = "3s";

/// A Redis server, a Redis cluster, or Redis behind Sentinel.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.addr) && self.addr.size() > 0) != has(self.sentinelConfig)",
        "message": "exactly one of addr or sentinelConfig must be set",
    },
    {
        "rule": "!(has(self.clusterMode) && self.clusterMode) || (has(self.addr) && self.addr.size() > 0)",
        "message": "clusterMode requires addr to be set",
    },
]))]
pub struct RedisStorage {
    /// The user as whom to sign in to Redis.
    pub acl_user_config: RedisUser,
    /// The address of the Redis server as host:port. Not together with sentinelConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addr: Option<String>,
    /// Whether addr is a node of a Redis cluster, from which the others are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_mode: Option<bool>,
    /// How long a connection may take to open.
    #[serde(default = "default_dial_timeout")]
    #[default(default_dial_timeout())]
    pub dial_timeout: DurationText,
    /// How long an answer may take.
    #[serde(default = "default_read_timeout")]
    #[default(default_read_timeout())]
    pub read_timeout: DurationText,
    /// The Sentinels that know which server is the master. Not together with addr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel_config: Option<RedisSentinel>,
    /// TLS to the Sentinels. Without it they are spoken to in clear text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel_tls: Option<RedisTls>,
    /// TLS to the Redis server. Without it the server is spoken to in clear text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<RedisTls>,
    /// How long sending a command may take.
    #[serde(default = "default_write_timeout")]
    #[default(default_write_timeout())]
    pub write_timeout: DurationText,
}

fn default_dial_timeout() -> DurationText {
    DEFAULT_DIAL_TIMEOUT.into()
}

fn default_read_timeout() -> DurationText {
    DEFAULT_READ_TIMEOUT.into()
}

fn default_write_timeout() -> DurationText {
    DEFAULT_WRITE_TIMEOUT.into()
}

/// A user of Redis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisUser {
    /// The key of a Secret that holds the password.
    pub password_secret_ref: SecretKeyRef,
    /// The key of a Secret that holds the name of the user. Leave it out to sign in with the password alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_secret_ref: Option<SecretKeyRef>,
}

/// Sentinels that know which Redis server is the master. Name them by address or by their Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisSentinel {
    /// The number of the Redis database.
    #[serde(default)]
    pub db: i32,
    /// The name under which the Sentinels know the master.
    pub master_name: String,
    /// The addresses of the Sentinels as host:port. They win over sentinelService.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub sentinel_addrs: Vec<String>,
    /// The Service in front of the Sentinels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel_service: Option<SentinelService>,
}

/// A Service in front of Sentinels.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentinelService {
    /// The name of the Service.
    pub name: String,
    /// The namespace of the Service. Defaults to the one of the object that uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The port of the Service.
    #[serde(default = "default_sentinel_port")]
    #[default(DEFAULT_SENTINEL_PORT)]
    pub port: i32,
}

fn default_sentinel_port() -> i32 {
    DEFAULT_SENTINEL_PORT
}

/// How Redis proves who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisTls {
    /// The key of a Secret that holds the certificate of the authority, in PEM form. Defaults to the authorities
    /// that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert_secret_ref: Option<SecretKeyRef>,
    /// Whether any certificate is accepted. For development only: whoever can change the traffic can read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_the_default_has() {
        let redis = json!({ "aclUserConfig": { "passwordSecretRef": { "key": "", "name": "" } } });
        assert_eq!(serde_json::from_value::<RedisStorage>(redis).unwrap(), RedisStorage::default());
        let service = json!({ "name": "" });
        assert_eq!(serde_json::from_value::<SentinelService>(service).unwrap(), SentinelService::default());
        assert_eq!(serde_json::from_value::<AuthServerStorage>(json!({})).unwrap(), AuthServerStorage::default());
    }
}
