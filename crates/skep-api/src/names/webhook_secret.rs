//! Files of webhook secrets in the proxy pod of an MCPServer.
//!
//! Everything starts from an identifier that is unique per webhook and purpose and contains neither the name nor the
//! key of the Secret. Volumes and mounts are emitted in byte order of the identifiers.

use super::env::sanitize;
use crate::hash::{CONFIG_HASH_LENGTH, sha256_hex};

/// Below which the secrets are mounted.
pub const DIRECTORY: &str = "/etc/toolhive/webhooks";

/// How many hexadecimal digits of the identifier's hash a volume name has.
const VOLUME_DIGITS: usize = 12;

/// Which list a webhook is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum List {
    /// Webhooks that change a request.
    Mutating,
    /// Webhooks that allow or refuse a request.
    Validating,
}

/// What a webhook needs a Secret for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The key that signs requests.
    Hmac,
    /// The authority that the webhook's certificate is checked against.
    TlsCa,
    /// The certificate that the proxy shows.
    TlsClientCert,
    /// The key of that certificate.
    TlsClientKey,
}

impl List {
    fn word(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        }
    }
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::TlsCa => "tls_ca",
            Self::TlsClientCert => "tls_client_cert",
            Self::TlsClientKey => "tls_client_key",
        }
    }

    /// The name of the file that holds the secret.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::TlsCa => "ca.crt",
            Self::TlsClientCert => "tls.crt",
            Self::TlsClientKey => "tls.key",
        }
    }
}

/// The identifier of a webhook's secret, in capitals. It changes with the reference to the Secret.
pub fn identifier(list: List, webhook: &str, purpose: Purpose, secret: &str, key: &str) -> String {
    let digest = sha256_hex(format!("{secret}/{key}").as_bytes());
    sanitize(&format!("WEBHOOK_{}_{webhook}_{}_{}", list.word(), purpose.word(), &digest[..CONFIG_HASH_LENGTH]))
}

/// Where the volume of the secret is mounted. A file of its own would never follow the Secret.
pub fn directory(identifier: &str) -> String {
    format!("{DIRECTORY}/{}", identifier.to_ascii_lowercase())
}

/// The path of the mounted secret, as the RunConfig names it.
pub fn file(identifier: &str, purpose: Purpose) -> String {
    format!("{}/{}", directory(identifier), purpose.file_name())
}

/// The volume of the secret. Any identifier gives 18 characters.
pub fn volume(identifier: &str) -> String {
    let digest = sha256_hex(identifier.as_bytes());
    format!("whsec-{}", &digest[..VOLUME_DIGITS])
}
