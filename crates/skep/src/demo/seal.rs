//! State that the server hands to clients and gets back: signed, bound to one request, and short-lived.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::message::{Fault, INTERNAL_ERROR, Members, Request};

/// How long a client may take for one round.
const LIFETIME: Duration = Duration::from_mins(10);

/// The key of this process. State of another process, or of an earlier run, is not accepted.
pub(crate) struct Seal {
    sign: EncodingKey,
    verify: DecodingKey,
}

impl fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Seal").finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    /// The request that the state belongs to.
    sub: String,
    exp: u64,
    answers: Members,
}

impl Seal {
    pub(crate) fn new() -> Self {
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self { sign: EncodingKey::from_secret(&secret), verify: DecodingKey::from_secret(&secret) }
    }

    /// The answers that a request has been given so far, for its next round.
    pub(crate) fn close(&self, subject: &str, answers: &Members) -> Result<String, Fault> {
        let failed = |reason: String| Fault::new(INTERNAL_ERROR, format!("cannot seal the request state: {reason}"));
        let now =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| failed(error.to_string()))?;
        let claims = Claims { sub: subject.to_owned(), exp: (now + LIFETIME).as_secs(), answers: answers.clone() };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.sign)
            .map_err(|error| failed(error.to_string()))
    }

    /// What [`Self::close`] was given. Why state is not accepted is nobody's business.
    pub(crate) fn open(&self, subject: &str, state: &str) -> Result<Members, Fault> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        validation.sub = Some(subject.to_owned());
        jsonwebtoken::decode::<Claims>(state, &self.verify, &validation)
            .map(|token| token.claims.answers)
            .map_err(|_| Fault::invalid_params("requestState is not valid for this request"))
    }
}

/// What makes two requests the same for the rounds of one exchange.
pub(crate) fn subject(request: &Request) -> String {
    let member = |name: &str| request.params.get(name).unwrap_or(&Value::Null);
    let identity = Value::from(vec![
        Value::from(request.method.as_str()),
        member("name").clone(),
        member("uri").clone(),
        member("arguments").clone(),
    ]);
    URL_SAFE_NO_PAD.encode(Sha256::digest(identity.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_is_good_for_its_own_request_and_unaltered_only() {
        let seal = Seal::new();
        let answers = Members::from_iter([("name".to_owned(), json!({"action": "accept"}))]);
        let state = seal.close("this", &answers).unwrap();
        assert_eq!(seal.open("this", &state).unwrap(), answers);
        assert!(seal.open("that", &state).is_err());
        assert!(seal.open("this", &format!("{state}x")).is_err());
        assert!(Seal::new().open("this", &state).is_err());
    }
}
