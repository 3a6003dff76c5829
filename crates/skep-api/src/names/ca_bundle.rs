//! Volumes and files of certificates that users trust, one ConfigMap each.

use super::LABEL_LIMIT;
use crate::hash::sha256_hex;

/// The key in a ConfigMap of certificates when none is given.
pub const DEFAULT_KEY: &str = "ca.crt";
/// Longest name of a ConfigMap of certificates for OIDC or telemetry: the volume name has to fit in 63 characters.
pub const CONFIG_MAP_NAME_LIMIT: usize = LABEL_LIMIT - OIDC_PREFIX.len();

const OIDC_PREFIX: &str = "oidc-ca-bundle-";
const TELEMETRY_PREFIX: &str = "otel-ca-bundle-";
const ENTRY_PREFIX: &str = "ca-bundle-";
/// How many hexadecimal digits tell changed volume names apart.
const DIGITS: usize = 8;

/// The volume of an identity provider's certificates.
pub fn oidc_volume(config_map: &str) -> String {
    volume(OIDC_PREFIX, config_map)
}

/// Where an identity provider's certificates are mounted.
pub fn oidc_directory(config_map: &str) -> String {
    format!("/config/certs/{config_map}")
}

/// The path of an identity provider's certificates.
pub fn oidc_file(config_map: &str, key: &str) -> String {
    format!("{}/{}", oidc_directory(config_map), key_or_default(key))
}

/// The volume of a telemetry collector's certificates.
pub fn telemetry_volume(config_map: &str) -> String {
    volume(TELEMETRY_PREFIX, config_map)
}

/// Where a telemetry collector's certificates are mounted.
pub fn telemetry_directory(config_map: &str) -> String {
    format!("/config/certs/otel/{config_map}")
}

/// The path of a telemetry collector's certificates.
pub fn telemetry_file(config_map: &str, key: &str) -> String {
    format!("{}/{}", telemetry_directory(config_map), key_or_default(key))
}

/// The volume, in a vMCP pod, of an MCPServerEntry's certificates.
pub fn entry_volume(entry: &str) -> String {
    volume(ENTRY_PREFIX, entry)
}

/// A volume has at most 63 characters and no dots, unlike the object it is named after. A name that does not fit is
/// cut, gets hyphens for dots, and is told apart by a hash.
fn volume(prefix: &str, name: &str) -> String {
    if prefix.len() + name.len() <= LABEL_LIMIT && !name.contains('.') {
        return format!("{prefix}{name}");
    }
    let kept: String = name.chars().take(LABEL_LIMIT - prefix.len() - 1 - DIGITS).collect();
    let digest = sha256_hex(name.as_bytes());
    format!("{prefix}{}-{}", kept.replace('.', "-").trim_end_matches('-'), &digest[..DIGITS])
}

/// Where, in a vMCP pod, an MCPServerEntry's certificates are mounted.
pub fn entry_directory(entry: &str) -> String {
    format!("/etc/toolhive/ca-bundles/{entry}")
}

/// The path, in a vMCP pod, of an MCPServerEntry's certificates.
pub fn entry_file(entry: &str, key: &str) -> String {
    format!("{}/{}", entry_directory(entry), key_or_default(key))
}

/// The key in a ConfigMap of certificates; an empty one stands for [`DEFAULT_KEY`].
pub fn key_or_default(key: &str) -> &str {
    if key.is_empty() { DEFAULT_KEY } else { key }
}
