//! Who calls: what a request has to prove, and how.

mod challenge;
mod introspection;
mod issuer;
mod key_set;
mod keys;
mod oidc;
mod proven;
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
pub(super) struct Unproven(Arc<Identity>);

impl Unproven {
    pub(super) fn local() -> Self {
        tracing::warn!("callers are not asked who they are: everybody who can reach the proxy is the local user");
        let user = local_user();
        Self(Arc::new(Identity::unproven(&user, &format!("Local User: {user}"))))
    }

    pub(super) fn anonymous() -> Self {
        Self(Arc::new(Identity::unproven("anonymous", "Anonymous User")))
    }
}

impl Layer for Unproven {
    fn pass<'a>(&'a self, exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        exchange.notes().identify(Arc::clone(&self.0));
        next.pass(exchange)
    }
}
