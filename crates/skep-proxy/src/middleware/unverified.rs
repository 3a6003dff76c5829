//! What a signed token says, without asking whether it is true. That is for whoever has it from somebody trusted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// A token that was taken apart.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) header: Map<String, Value>,
    pub(super) claims: Map<String, Value>,
}

impl Unverified {
    /// Nothing when it is no signed token.
    pub(super) fn read(token: &str) -> Option<Self> {
        let object = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        let mut parts = token.split('.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self { header: object(header)?, claims: object(claims)? }).filter(|_| parts.next().is_none())
    }
}
