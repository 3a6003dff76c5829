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
