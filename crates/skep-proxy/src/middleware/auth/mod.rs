//! Who calls: what a request has to prove, and how.

mod challenge;
#[cfg(test)]
mod elsewhere;
mod introspection;
mod issuer;
mod key_set;
mod keys;
mod oidc;
mod proven;
pub(crate) mod resource;
mod token;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
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

/// The user of the system that runs the proxy. One whom the system has no name for is called what the environment says.
fn local_user() -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let told = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let names = user_name(&users, rustix::process::getuid().as_raw()).into_iter().chain(told);
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "local".to_owned())
}

/// What a user with this number is called in a list of users.
fn user_name(users: &str, id: u32) -> Option<String> {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut named = fields.filter(|fields| fields.get(2).is_some_and(|number| number.parse() == Ok(id)));
    named.find_map(|fields| fields.first().map(|name| (*name).to_owned()))
}

/// Takes everybody for the same.
#[derive(Debug)]
pub(super) struct Unproven {
    subject: String,
    name: String,
    /// Whoever called last, and in which second.
    last: ArcSwapOption<(i64, Arc<Identity>)>,
}

impl Unproven {
    pub(super) fn local() -> Self {
        tracing::warn!("callers are not asked who they are: everybody who can reach the proxy is the local user");
        let user = local_user();
        Self { name: format!("Local User: {user}"), subject: user, last: ArcSwapOption::empty() }
    }

    pub(super) fn anonymous() -> Self {
        let (subject, name) = ("anonymous".to_owned(), "Anonymous User".to_owned());
        Self { subject, name, last: ArcSwapOption::empty() }
    }

    /// Whoever calls now: claims have an end, and a proxy outlives it. Within a second everybody is the same.
    fn identity(&self, now: i64) -> Arc<Identity> {
        if let Some((_, identity)) = self.last.load().as_deref().filter(|(second, _)| *second == now) {
            return Arc::clone(identity);
        }
        let identity = Arc::new(Identity::unproven(&self.subject, &self.name, now));
        self.last.store(Some(Arc::new((now, Arc::clone(&identity)))));
        identity
    }
}

impl Layer for Unproven {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        exchange.notes().identify(self.identity(now));
        next.pass(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_user_is_the_one_that_the_system_knows() {
        let users = "root:x:0:0:root:/root:/bin/sh\n# a comment\nbee:x:1000:1000::/home/bee:/bin/sh\n";
        assert_eq!(user_name(users, 1000).as_deref(), Some("bee"));
        assert_eq!(user_name(users, 0).as_deref(), Some("root"));
        assert_eq!(user_name(users, 7), None);
    }

    #[test]
    fn claims_that_nobody_proved_are_good_for_a_day_from_every_request_on() {
        let anonymous = Unproven::anonymous();
        for now in [1_000_000, 1_000_000 + 25 * 3600] {
            let claims = &anonymous.identity(now).claims;
            assert_eq!(
                (&claims["iat"], &claims["nbf"], &claims["exp"]),
                (&now.into(), &now.into(), &(now + 86_400).into())
            );
        }
    }
}
