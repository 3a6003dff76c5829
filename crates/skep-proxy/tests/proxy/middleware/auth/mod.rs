//! Callers who have to prove who they are.

mod announced;
mod answers;
mod attacks;
mod cluster;
mod inside;
mod introspection;
pub(crate) mod issuer;
mod keys;
mod provider;
mod sessions;
mod tasks;
mod traps;

use serde_json::json;
use skep_proxy::middleware::{Authentication, Oidc, OidcSettings, Step};

use super::{Guarded, with_tools};
use crate::http::{Request, Response, call};

/// A server whose callers have to prove who they are.
async fn guarded(settings: &OidcSettings) -> Guarded {
    let oidc = Box::new(Oidc::new(settings).unwrap());
    Guarded::new(vec![Step::Authenticate(Authentication::Oidc(oidc)), Step::Parse], with_tools).await
}

/// Calls a tool with a token.
async fn call_with(guarded: &Guarded, token: &str) -> Response {
    guarded.send(Request::post(&call(1, "feed")).header("Authorization", &format!("Bearer {token}"))).await
}

/// What is said to the bearer of a good token that names nobody, in the header and in the body alike.
const NOBODY: &str = "Invalid authentication claims";

/// Checks that an answer is the refusal with these words, and nothing besides.
pub(super) async fn check_refused(row: &str, mut answer: Response, issuer: &str, told: &str) {
    let place = "https://hive.example/.well-known/oauth-protected-resource/mcp";
    let header = format!(
        "Bearer realm=\"{issuer}\", resource_metadata=\"{place}\", error=\"invalid_token\", error_description=\"{told}\""
    );
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(&*header)), "{row}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{row}");
    let description = if told == NOBODY { told.to_owned() } else { format!("Invalid token: {told}") };
    assert_eq!(answer.json().await, json!({"error": "invalid_token", "error_description": description}), "{row}");
}
