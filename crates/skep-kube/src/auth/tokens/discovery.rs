//! What others need to check our tokens: the key set and the OpenID discovery document.

use serde_json::{Value, json};

use super::TokenAuthority;

/// Where the key set is served.
pub const KEY_SET_PATH: &str = "/openid/v1/jwks";
/// Where the discovery document is served.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";

impl TokenAuthority {
    /// The public keys, served as `application/jwk-set+json`.
    pub fn key_set(&self) -> Value {
        let (x, y) = self.key.coordinates();
        json!({ "keys": [{
            "use": "sig", "kty": "EC", "kid": self.key.id(), "crv": "P-256", "alg": "ES256", "x": x, "y": y,
        }] })
    }

    /// The discovery document. Whoever has found it by the name of the issuer finds the keys by that, too: the address that
    /// a server listens on may be one that pods cannot reach.
    pub fn openid_configuration(&self) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("{}{KEY_SET_PATH}", self.issuer.trim_end_matches('/')),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}
