//! The key that signs tokens: P-256, kept as a PKCS#8 file.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, EncodingKey};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use sha2::{Digest as _, Sha256};

/// Why a text is no signing key. The text itself is never told.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("cannot make a key: {0}")]
    Generate(rcgen::Error),
    #[error("not a private key in PEM form")]
    NotAKey,
    #[error("not a key on the curve P-256, which tokens are signed with")]
    WrongCurve,
}

pub struct SigningKey {
    pem: String,
    pub(super) encoding: EncodingKey,
    pub(super) decoding: DecodingKey,
    id: String,
    x: String,
    y: String,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    pub fn generate() -> Result<Self, KeyError> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(KeyError::Generate)?;
        Self::from_pem(&pair.serialize_pem())
    }

    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let pair = KeyPair::from_pem(pem).map_err(|_| KeyError::NotAKey)?;
        if !pair.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(KeyError::WrongCurve);
        }
        // An uncompressed point: a byte that says so, then both coordinates.
        let Some((4, point)) = pair.public_key_raw().split_first().map(|(form, point)| (*form, point)) else {
            return Err(KeyError::WrongCurve);
        };
        let Some((x, y)) = point.split_at_checked(32).filter(|(_, y)| y.len() == 32) else {
            return Err(KeyError::WrongCurve);
        };
        let (x, y) = (BASE64_URL_SAFE_NO_PAD.encode(x), BASE64_URL_SAFE_NO_PAD.encode(y));
        let id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(pair.subject_public_key_info()));
        let encoding = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).map_err(|_| KeyError::WrongCurve)?;
        let decoding = DecodingKey::from_ec_components(&x, &y).map_err(|_| KeyError::WrongCurve)?;
        Ok(Self { pem: pair.serialize_pem(), encoding, decoding, id, x, y })
    }

    /// The private key, to be kept in a file that nobody else can read.
    pub fn to_pem(&self) -> &str {
        &self.pem
    }

    /// The name of the key in tokens and in the key set: a digest of the public key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The coordinates of the public key.
    pub(super) fn coordinates(&self) -> (&str, &str) {
        (&self.x, &self.y)
    }
}
