//! Where the embedded authorization server keeps what it must remember.

use crate::config::document::{object, word};
use crate::duration::DurationText;

object! {
    /// Where clients, tokens and logins are kept.
    pub struct AuthServerStorage {
        omit redis_config: Option<AuthServerRedis>,
        omit type_: StorageType = "type",
    }
}

word! {
    /// Kinds of stores.
    pub enum StorageType {
        /// The memory of the process; a restart forgets everything.
        Memory = "memory",
        /// A Redis server that all replicas share.
        Redis = "redis",
    }
}

object! {
    /// A Redis server, cluster or set of sentinels. Either `addr` or `sentinel_config` is set.
    pub struct AuthServerRedis {
        omit acl_user_config: Option<RedisAclUser>,
        omit addr: String,
        /// `aclUser`.
        always auth_type: String,
        omit cluster_mode: bool,
        /// Unset means 5 seconds.
        omit dial_timeout: DurationText,
        /// `thv:auth:{<namespace>:<name>}:`, the braces included.
        always key_prefix: String,
        /// Unset means 3 seconds.
        omit read_timeout: DurationText,
        omit sentinel_config: Option<RedisSentinel>,
        omit sentinel_tls: Option<RedisTls>,
        omit tls: Option<RedisTls>,
        /// Unset means 3 seconds.
        omit write_timeout: DurationText,
    }
}

impl AuthServerRedis {
    /// The only way of logging in.
    pub const AUTH_TYPE_ACL_USER: &str = "aclUser";
}

object! {
    /// The environment variables with the credentials.
    pub struct RedisAclUser {
        always password_env_var: String,
        /// Empty means a login with the password alone.
        always username_env_var: String,
    }
}

object! {
    /// Sentinels that know which server is the master.
    pub struct RedisSentinel {
        omit db: i32,
        omit master_name: String,
        omit sentinel_addrs: Vec<String>,
    }
}

object! {
    /// How Redis is reached over TLS.
    pub struct RedisTls {
        omit ca_cert_file: String,
        omit insecure_skip_verify: bool,
    }
}
