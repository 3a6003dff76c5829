//! Volumes and files of the embedded auth server, in the proxy pods and in the vMCP pods alike.

/// Where signing keys are mounted.
pub const KEY_DIRECTORY: &str = "/etc/toolhive/authserver/keys";
/// Where HMAC secrets are mounted.
pub const HMAC_DIRECTORY: &str = "/etc/toolhive/authserver/hmac";
/// The volume of the authority of Redis.
pub const REDIS_CA_VOLUME: &str = "redis-tls-ca-master";
/// The volume of the authority of the Redis sentinels.
pub const SENTINEL_CA_VOLUME: &str = "redis-tls-ca-sentinel";
/// The file name, and sub-path, of the authority of Redis.
pub const REDIS_CA_KEY: &str = "ca.crt";
/// The file name, and sub-path, of the authority of the Redis sentinels.
pub const SENTINEL_CA_KEY: &str = "sentinel-ca.crt";
/// The path of the authority of Redis.
pub const REDIS_CA_FILE: &str = "/etc/toolhive/authserver/redis-tls/ca.crt";
/// The path of the authority of the Redis sentinels.
pub const SENTINEL_CA_FILE: &str = "/etc/toolhive/authserver/redis-tls/sentinel-ca.crt";
/// The port of a sentinel Service that names none.
pub const DEFAULT_SENTINEL_PORT: i32 = 26379;
/// What an upstream's default redirect URI ends with.
pub const CALLBACK_PATH: &str = "/oauth/callback";

/// The volume of a signing key. Key 0 signs, the others only verify.
pub fn signing_key_volume(index: usize) -> String {
    format!("authserver-signing-key-{index}")
}

/// The file name, and sub-path, of a signing key in [`KEY_DIRECTORY`].
pub fn signing_key_name(index: usize) -> String {
    format!("key-{index}.pem")
}

/// The path of a signing key.
pub fn signing_key_file(index: usize) -> String {
    format!("{KEY_DIRECTORY}/{}", signing_key_name(index))
}

/// The volume of an HMAC secret. Secret 0 is current, the others only verify.
pub fn hmac_volume(index: usize) -> String {
    format!("authserver-hmac-secret-{index}")
}

/// The file name, and sub-path, of an HMAC secret in [`HMAC_DIRECTORY`].
pub fn hmac_name(index: usize) -> String {
    format!("hmac-{index}")
}

/// The path of an HMAC secret.
pub fn hmac_file(index: usize) -> String {
    format!("{HMAC_DIRECTORY}/{}", hmac_name(index))
}

/// Where an upstream sends users back when its redirect URI is not given.
pub fn redirect_uri(resource_url: &str) -> String {
    format!("{}{CALLBACK_PATH}", resource_url.trim_end_matches('/'))
}
