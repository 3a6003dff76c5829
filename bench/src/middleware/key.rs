//! A key of RSA, and tokens that are signed with it by a library that is not ours.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::mcp::part::companion::{AUDIENCE, ISSUER};

const ID: &str = "bench";
/// How long tokens are good for, in seconds.
const LIFETIME: u64 = 3600;

pub(super) struct Key {
    private: EncodingKey,
    /// As an issuer publishes it.
    pub(super) public: Value,
}

impl Key {
    pub(super) fn new() -> anyhow::Result<Self> {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)?;
        let private = EncodingKey::from_rsa_pem(pair.serialize_pem().as_bytes())?;
        let mut public = serde_json::to_value(Jwk::from_encoding_key(&private, Algorithm::RS256)?)?;
        public["kid"] = json!(ID);
        Ok(Self { private, public })
    }

    /// A token of somebody, like no other one.
    pub(super) fn token(&self, number: usize) -> anyhow::Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let claims = json!({
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ann",
            "name": "Ann",
            "email": "ann@example.com",
            "groups": ["team-1", "team-2", "keepers"],
            "iat": now,
            "exp": now + LIFETIME,
            "jti": number.to_string(),
        });
        let header = Header { kid: Some(ID.to_owned()), ..Header::new(Algorithm::RS256) };
        Ok(jsonwebtoken::encode(&header, &claims, &self.private)?)
    }
}
