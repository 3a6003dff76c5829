//! What a request says to the server besides its message, in a form that tells nobody anything.
//!
//! What a session at the server holds may depend on that: on a tenant, or on what a token allows. So a session is used by
//! requests that say the same. By which way a request came, who traces it and what its client likes to read are another
//! thing each time and say nothing about whom it is for.

use aws_lc_rs::digest;
use http::{HeaderMap, HeaderName};

use crate::middleware::Grants;

/// What is said about one request, or the way that it came.
const PASSING: [&str; 31] = [
    "b3",
    "baggage",
    "cache-control",
    "cdn-loop",
    "cf-connecting-ip",
    "cf-ipcountry",
    "cf-ray",
    "cf-visitor",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "max-forwards",
    "newrelic",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "true-client-ip",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
    "x-request-start",
];
/// The same, by what the names begin with, and by what they have in them.
const PASSING_BEGINNINGS: [&str; 7] = ["accept", "content-", "if-", "sec-", "x-b3-", "x-datadog-", "x-envoy-"];
const PASSING_PARTS: [&str; 6] = ["correlation-id", "idempotency", "request-id", "requestid", "span", "trace"];

/// What a request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Surroundings([u8; 32]);

impl Surroundings {
    /// What is said with these headers, some of which may be credentials that were given for those of the client.
    pub(super) fn of(headers: &HeaderMap, grants: Option<&Grants>) -> Self {
        let is_given = |name: &HeaderName| grants.is_some_and(|grants| grants.contain(name));
        let mut said: Vec<(&[u8], &[u8])> = headers
            .iter()
            .filter(|(name, _)| !is_passing(name.as_str()) && !is_given(name))
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        // The order of names means nothing, and that of the values of one does.
        said.sort_by_key(|(name, _)| *name);
        said.extend(grants.into_iter().flat_map(Grants::keys).map(|key| (&b""[..], key)));
        let mut context = digest::Context::new(&digest::SHA256);
        for part in said.into_iter().flat_map(|(name, value)| [name, value]) {
            // With its length, so that no two lists of parts look alike.
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        let mut surroundings = [0; 32];
        surroundings.copy_from_slice(context.finish().as_ref());
        Self(surroundings)
    }
}

fn is_passing(name: &str) -> bool {
    PASSING.contains(&name)
        || PASSING_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || PASSING_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_is_about_one_request_makes_no_difference() {
        let with = |headers: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            Surroundings::of(&headers.iter().map(pair).collect(), None)
        };
        let own = with(&[("x-tenant", "a"), ("x-yard", "b")]);
        assert_eq!(with(&[("x-yard", "b"), ("user-agent", "c"), ("x-tenant", "a"), ("x-trace-id", "1")]), own);
        for other in [
            with(&[]),
            with(&[("x-tenant", "a")]),
            with(&[("x-tenant", "b"), ("x-yard", "b")]),
            with(&[("x-tenant", "a"), ("x-yard", "b"), ("x-yard", "c")]),
            with(&[("x-tenant", "ax-yardb")]),
            with(&[("x-tenant", "a"), ("x-yard", "b"), ("x-forwarded-user", "ann")]),
            with(&[("x-tenant", "a"), ("x-yard", "b"), ("authorization", "Bearer a")]),
        ] {
            assert_ne!(other, own);
        }
        assert_ne!(with(&[("x-yard", "a"), ("x-yard", "b")]), with(&[("x-yard", "b"), ("x-yard", "a")]));
    }
}
