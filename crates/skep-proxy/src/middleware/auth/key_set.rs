//! The public keys of an issuer, after RFC 7517.

use std::collections::HashMap;

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, EcdsaVerificationAlgorithm,
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaParameters,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::token::{Algorithm, SignedToken, TokenError};

/// More keys than that are not kept.
const MOST: usize = 256;

/// What a key of RSA can be for.
const OF_RSA: [(Algorithm, &RsaParameters); 3] = [
    (Algorithm::Rs256, &RSA_PKCS1_2048_8192_SHA256),
    (Algorithm::Rs384, &RSA_PKCS1_2048_8192_SHA384),
    (Algorithm::Rs512, &RSA_PKCS1_2048_8192_SHA512),
];

/// A curve by its name, what a key on it is for, and how many bytes a coordinate has.
type Curve = (&'static str, Algorithm, &'static EcdsaVerificationAlgorithm, usize);

const OF_CURVES: [Curve; 3] = [
    ("P-256", Algorithm::Es256, &ECDSA_P256_SHA256_FIXED, 32),
    ("P-384", Algorithm::Es384, &ECDSA_P384_SHA384_FIXED, 48),
    ("P-521", Algorithm::Es512, &ECDSA_P521_SHA512_FIXED, 66),
];

/// One key, ready to check signatures of one algorithm.
#[derive(Debug)]
struct Key {
    algorithm: Algorithm,
    public: ParsedPublicKey,
}

/// Keys by their ids. Keys of a kind that is not taken are left out.
#[derive(Debug, Default)]
pub(super) struct KeySet(HashMap<String, Vec<Key>>);

impl KeySet {
    /// Reads a document. Nothing when it is none.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(text).ok()?;
        let mut keys: HashMap<String, Vec<Key>> = HashMap::new();
        for key in document.get("keys")?.as_array()?.iter().take(MOST) {
            if let Some(id) = key["kid"].as_str() {
                keys.entry(id.to_owned()).or_default().extend(read(key));
            }
        }
        Some(Self(keys))
    }

    /// Whether no token could be checked with it.
    pub(super) fn is_useless(&self) -> bool {
        self.0.values().all(Vec::is_empty)
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Checks the signature of a token with the key that it names, if that is a key for its algorithm.
    pub(super) fn verify(&self, token: &SignedToken<'_>) -> Result<(), TokenError> {
        let keys = self.0.get(&token.key_id).ok_or(TokenError::UnknownKey)?;
        let fitting = keys.iter().filter(|key| key.algorithm == token.algorithm);
        let is_signed = fitting.map(|key| key.public.verify_sig(token.signed, &token.signature)).any(|it| it.is_ok());
        if is_signed { Ok(()) } else { Err(TokenError::Signature) }
    }
}

/// A key for each algorithm that it is for.
fn read(key: &Value) -> Vec<Key> {
    let is_for_signatures = key["use"].as_str().is_none_or(|purpose| purpose == "sig");
    if !is_for_signatures {
        return Vec::new();
    }
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str()?).ok();
    let named = key["alg"].as_str();
    let is_named = |algorithm: &Algorithm| named.is_none_or(|named| Algorithm::read(named) == Some(*algorithm));
    match key["kty"].as_str() {
        Some("RSA") => {
            let Some((n, e)) = bytes("n").zip(bytes("e")) else { return Vec::new() };
            let components = PublicKeyComponents { n, e };
            let parse = |(algorithm, parameters): (Algorithm, &'static RsaParameters)| {
                Some(Key { algorithm, public: components.to_parsed_public_key(parameters).ok()? })
            };
            OF_RSA.into_iter().filter(|(algorithm, _)| is_named(algorithm)).filter_map(parse).collect()
        }
        Some("EC") => {
            let curve = OF_CURVES.into_iter().find(|(name, ..)| key["crv"] == *name);
            let point = |length: usize| {
                let (x, y) = bytes("x").zip(bytes("y"))?;
                // The form of a point that is not compressed.
                (x.len() == length && y.len() == length).then(|| [&[4][..], &x, &y].concat())
            };
            let parse = |(_, algorithm, parameters, length): Curve| {
                Some(Key { algorithm, public: ParsedPublicKey::new(parameters, point(length)?).ok()? })
            };
            curve.filter(|(_, algorithm, ..)| is_named(algorithm)).and_then(parse).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    fn encode(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[test]
    fn the_largest_curve_is_taken_too() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P521_SHA512_FIXED_SIGNING).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let key =
            json!({"kty": "EC", "crv": "P-521", "kid": "k", "x": encode(&point[..66]), "y": encode(&point[66..])});
        let signed = format!("{}.{}", encode(br#"{"alg":"ES512","kid":"k"}"#), encode(b"{}"));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        let text = format!("{signed}.{}", encode(signature.as_ref()));
        let keys = |key: &Value| KeySet::read(json!({ "keys": [key] }).to_string().as_bytes()).unwrap();
        assert_eq!(keys(&key).verify(&SignedToken::read(&text).unwrap()), Ok(()));
        for (member, value) in [("alg", "ES256"), ("use", "enc"), ("crv", "P-256"), ("kty", "RSA"), ("x", "AA")] {
            let mut other = key.clone();
            other[member] = json!(value);
            let refused = keys(&other).verify(&SignedToken::read(&text).unwrap());
            assert_eq!(refused, Err(TokenError::Signature), "{member} {value}");
        }
    }

    #[test]
    fn a_document_that_is_no_key_set_is_told_from_one_with_odd_keys() {
        for text in ["", "[]", "{}", r#"{"keys":{}}"#] {
            assert!(KeySet::read(text.as_bytes()).is_none(), "{text}");
        }
        let odd = r#"{"keys":[7,{"kid":"a"},{"kid":"b","kty":"oct","k":"AAAA"},{"kty":"RSA"}]}"#;
        let read = KeySet::read(odd.as_bytes()).unwrap();
        assert!(read.has("a") && read.has("b") && read.is_useless());
    }
}
