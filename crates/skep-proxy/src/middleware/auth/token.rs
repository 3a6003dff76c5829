//! Tokens that prove themselves: signed JSON, after RFC 7515 and 7519.
//!
//! A token is taken apart here, strictly: what is said twice is refused, whichever of the two would be true. Its
//! signature is checked with a key that fits exactly one family of algorithms, and never by what the token says alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use skep_mcp::json::{self, EditError, JsonError};

/// Longer tokens are not looked at.
const LARGEST: usize = 32 << 10;

/// Why a token proves nothing. These words are told to the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// It is no signed JSON; it may be of another kind.
    #[error("token is malformed")]
    Malformed,
    #[error("token is too large")]
    TooLarge,
    #[error("token says the same thing twice")]
    Ambiguous,
    #[error("unexpected signing method")]
    Algorithm,
    #[error("token asks for extensions that are not understood")]
    Critical,
    #[error("token header missing kid")]
    NoKeyId,
    #[error("key ID not found in JWKS")]
    UnknownKey,
    #[error("token signature is invalid")]
    Signature,
    #[error("token is expired")]
    Expired,
    #[error("token has no expiration time")]
    NoExpiry,
    #[error("token is not valid yet")]
    NotYet,
    #[error("invalid issuer")]
    Issuer,
    #[error("invalid audience")]
    Audience,
    #[error("token is not active")]
    Inactive,
    /// It could not be found out.
    #[error("{0}")]
    Unknown(&'static str),
}

/// The ways of signing that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    pub(super) fn read(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "RS384" => Some(Self::Rs384),
            "RS512" => Some(Self::Rs512),
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            "ES512" => Some(Self::Es512),
            _ => None,
        }
    }
}

/// A token that was taken apart. Nothing of it is true before its signature was checked.
#[derive(Debug)]
pub(super) struct SignedToken<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: String,
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
    pub(super) claims: Map<String, Value>,
}

impl<'a> SignedToken<'a> {
    pub(super) fn read(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > LARGEST {
            return Err(TokenError::TooLarge);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = (object(header)?, object(claims)?);
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Malformed)?;
        let (header, claims) = (header?, claims?);
        if header.contains_key("crit") {
            return Err(TokenError::Critical);
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::read);
        let key_id = header.get("kid").and_then(Value::as_str);
        Ok(Self {
            algorithm: algorithm.ok_or(TokenError::Algorithm)?,
            key_id: key_id.ok_or(TokenError::NoKeyId)?.to_owned(),
            signed: signed.as_bytes(),
            signature,
            claims,
        })
    }
}

/// A part of a token. What is no object makes the token malformed; one that says something twice makes it wrong.
fn object(part: &str) -> Result<Result<Map<String, Value>, TokenError>, TokenError> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    let text = std::str::from_utf8(&text).map_err(|_| TokenError::Malformed)?;
    let object = match serde_json::from_str(text) {
        Ok(object) => object,
        Err(_) if is_deep(text) => return Ok(Err(TokenError::TooLarge)),
        Err(_) => return Err(TokenError::Malformed),
    };
    Ok(if json::twice(text) == Ok(None) { Ok(object) } else { Err(TokenError::Ambiguous) })
}

/// Whether a text is an object that only goes deeper than it may: such a token is signed JSON, and no word of another kind.
fn is_deep(text: &str) -> bool {
    matches!(json::members(text), Err(EditError::Json(JsonError::TooDeep { .. })))
}

/// What the claims of a token have to say.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    /// Not asked for when empty.
    pub(super) issuer: String,
    /// Not asked for when empty.
    pub(super) audience: String,
}

impl Expected {
    /// Checks what does not depend on the time.
    pub(super) fn check(&self, claims: &Map<String, Value>) -> Result<(), TokenError> {
        let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or_default();
        if !self.issuer.is_empty() && issuer.trim() != self.issuer.trim() {
            return Err(TokenError::Issuer);
        }
        let is_meant = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(audiences)) => audiences.iter().any(|audience| *audience == *self.audience),
            _ => false,
        };
        if self.audience.is_empty() || is_meant { Ok(()) } else { Err(TokenError::Audience) }
    }
}

/// Checks the times of a signed token, in seconds. There is no leeway.
pub(super) fn check_times(claims: &Map<String, Value>, now: f64) -> Result<(), TokenError> {
    let time = |name: &str| claims.get(name).filter(|value| !value.is_null()).map(Value::as_f64);
    match time("nbf") {
        Some(Some(start)) if now < start => return Err(TokenError::NotYet),
        // A time that is none.
        Some(None) => return Err(TokenError::NotYet),
        _ => {}
    }
    match time("exp") {
        Some(Some(end)) if now < end => Ok(()),
        Some(_) => Err(TokenError::Expired),
        None => Err(TokenError::NoExpiry),
    }
}

/// The time now, in seconds.
pub(super) fn now() -> f64 {
    let now = time::OffsetDateTime::now_utc();
    #[expect(clippy::cast_precision_loss, reason = "seconds are far below what a float can hold")]
    let seconds = now.unix_timestamp() as f64;
    seconds + f64::from(now.millisecond()) / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        if let Value::Object(claims) = value { claims } else { panic!("{value} are no claims") }
    }

    fn token(header: &str, claims: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn tokens_are_taken_apart_strictly() {
        let good = r#"{"alg":"ES512","kid":"k"}"#;
        for (text, expected) in [
            (token(good, "{}"), None),
            ("opaque".to_owned(), Some(TokenError::Malformed)),
            ("a.b".to_owned(), Some(TokenError::Malformed)),
            ("a.b.c.d".to_owned(), Some(TokenError::Malformed)),
            (token("[]", "{}"), Some(TokenError::Malformed)),
            (token(good, "no json"), Some(TokenError::Malformed)),
            (token(good, "{}") + "=", Some(TokenError::Malformed)),
            (token(r#"{"alg":"none","kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"alg":"None","kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"alg":"HS256","kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"alg":"PS256","kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"alg":"EdDSA","kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"kid":"k"}"#, "{}"), Some(TokenError::Algorithm)),
            (token(r#"{"alg":"RS256"}"#, "{}"), Some(TokenError::NoKeyId)),
            (token(r#"{"alg":"RS256","kid":7}"#, "{}"), Some(TokenError::NoKeyId)),
            (token(r#"{"alg":"RS256","kid":"k","crit":["b64"],"b64":false}"#, "{}"), Some(TokenError::Critical)),
            (token(r#"{"alg":"none","alg":"RS256","kid":"k"}"#, "{}"), Some(TokenError::Ambiguous)),
            (token(good, r#"{"sub":"a","sub":"b"}"#), Some(TokenError::Ambiguous)),
            (token(good, r#"{"sub":"a","\u0073ub":"b"}"#), Some(TokenError::Ambiguous)),
            (token(good, r#"{"realm":{"roles":["a"],"roles":["b"]}}"#), Some(TokenError::Ambiguous)),
            (token(good, r#"{"acts":[{"sub":"a","sub":"b"}]}"#), Some(TokenError::Ambiguous)),
            ("a".repeat(LARGEST + 1), Some(TokenError::TooLarge)),
            (token(good, &format!(r#"{{"sub":{}1{}}}"#, "[".repeat(200), "]".repeat(200))), Some(TokenError::TooLarge)),
        ] {
            assert_eq!(SignedToken::read(&text).err(), expected, "{text:.90}");
        }
    }

    #[test]
    fn times_have_no_leeway() {
        for (value, expected) in [
            (json!({"exp": 101}), None),
            (json!({"exp": 100.5, "nbf": 100}), None),
            (json!({"exp": 100}), Some(TokenError::Expired)),
            (json!({"exp": 99}), Some(TokenError::Expired)),
            (json!({"exp": "101"}), Some(TokenError::Expired)),
            (json!({}), Some(TokenError::NoExpiry)),
            (json!({"exp": 200, "nbf": 101}), Some(TokenError::NotYet)),
            (json!({"exp": 200, "nbf": "now"}), Some(TokenError::NotYet)),
            (json!({"exp": 200, "iat": 500}), None),
        ] {
            assert_eq!(check_times(&claims(value.clone()), 100.0).err(), expected, "{value}");
        }
    }

    #[test]
    fn issuer_and_audience_are_what_was_asked_for() {
        let expected = Expected { issuer: "https://i".to_owned(), audience: "hive".to_owned() };
        for (value, error) in [
            (json!({"iss": " https://i ", "aud": "hive"}), None),
            (json!({"iss": "https://i", "aud": ["a", "hive"]}), None),
            (json!({"iss": "https://i/", "aud": "hive"}), Some(TokenError::Issuer)),
            (json!({"aud": "hive"}), Some(TokenError::Issuer)),
            (json!({"iss": ["https://i"], "aud": "hive"}), Some(TokenError::Issuer)),
            (json!({"iss": "https://i", "aud": "Hive"}), Some(TokenError::Audience)),
            (json!({"iss": "https://i", "aud": [["hive"]]}), Some(TokenError::Audience)),
            (json!({"iss": "https://i", "azp": "hive"}), Some(TokenError::Audience)),
        ] {
            assert_eq!(expected.check(&claims(value.clone())).err(), error, "{value}");
        }
        assert_eq!(Expected::default().check(&Map::new()), Ok(()));
    }
}
