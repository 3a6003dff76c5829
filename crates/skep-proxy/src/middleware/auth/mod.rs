//! Who calls: what a request has to prove, and how.

mod challenge;
mod introspection;
mod issuer;
mod key_set;
mod keys;
mod oidc;
pub(crate) mod resource;
mod token;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::HeaderMap;

use super::exchange::Exchange;
use super::identity::Identity;
use super::layer::{Layer, Next};
use crate::answer::Answer;

pub use self::oidc::{Oidc, OidcError, OidcSettings};

/// The token that a request comes with, if it comes with one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    oidc::bearer(headers).ok()
}

/// How callers are known.
#[derive(Debug)]
pub enum Authentication {
    /// Everybody is the user who runs the proxy.
    Local,
    /// Everybody is nobody in particular.
    Anonymous,
    /// Everybody has to prove who they are.
    Oidc(Box<Oidc>),
}

/// The user of the system that runs the proxy, as far as the environment says.
fn local_user() -> String {
    let told = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    told.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "local".to_owned())
}

/// Takes everybody for the same.
#[derive(Debug)]
pub(super) struct Unproven {
    subject: String,
    name: String,
}

impl Unproven {
    pub(super) fn local() -> Self {
        tracing::warn!("callers are not asked who they are: everybody who can reach the proxy is the local user");
        let user = local_user();
        Self { name: format!("Local User: {user}"), subject: user }
    }

    pub(super) fn anonymous() -> Self {
        Self { subject: "anonymous".to_owned(), name: "Anonymous User".to_owned() }
    }

    /// Whoever calls now: claims have an end, and a proxy outlives it.
    fn identity(&self, now: i64) -> Identity {
        Identity::unproven(&self.subject, &self.name, now)
    }
}

impl Layer for Unproven {
    fn pass<'a>(&'a self, exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        exchange.notes().identify(Arc::new(self.identity(now)));
        next.pass(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_that_nobody_proved_are_good_for_a_day_from_every_request_on() {
        let anonymous = Unproven::anonymous();
        for now in [1_000_000, 1_000_000 + 25 * 3600] {
            let claims = anonymous.identity(now).claims;
            assert_eq!(
                (&claims["iat"], &claims["nbf"], &claims["exp"]),
                (&now.into(), &now.into(), &(now + 86_400).into())
            );
        }
    }
}
