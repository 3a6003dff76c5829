//! SelfSubjectReview and TokenReview: who am I, and whose token is this.

use serde_json::{Value, json};

use super::{AUTHENTICATION_VERSION, metadata, texts};
use crate::auth::tokens::{BoundObjects, TokenAuthority, timestamp};
use crate::auth::user::User;
use crate::status::ApiError;

pub fn self_subject_review(user: &User, now: i64) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": AUTHENTICATION_VERSION,
        "metadata": { "creationTimestamp": timestamp(now) },
        "status": { "userInfo": user.document() },
    })
}

/// The answer repeats the token, as the real server's does; it is for the client that sent it.
pub fn token_review(
    review: &Value,
    tokens: &TokenAuthority,
    objects: &dyn BoundObjects,
    now: i64,
) -> Result<Value, ApiError> {
    let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = texts(review.pointer("/spec/audiences"));
    let status = match tokens.verify(token, &audiences, objects, now) {
        Ok(verified) => {
            json!({ "authenticated": true, "user": verified.user.document(), "audiences": verified.audiences })
        }
        Err(error) => json!({ "user": {}, "error": error.review_text() }),
    };
    let mut spec = json!({ "token": token });
    if !audiences.is_empty() {
        spec["audiences"] = audiences.into();
    }
    Ok(json!({
        "kind": "TokenReview",
        "apiVersion": AUTHENTICATION_VERSION,
        "metadata": metadata(review),
        "spec": spec,
        "status": status,
    }))
}
