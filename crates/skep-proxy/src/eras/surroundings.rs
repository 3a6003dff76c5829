//! What a request says to the server besides its message, in a form that tells nobody anything.
//!
//! What a session at the server holds may depend on that: on a tenant, or on what a token allows. So a session is used by
//! requests that say the same. A caller who has proved who it is may have another token each time, its own or one that was
//! given for it, and then what the proof allows counts instead. Where nobody had to prove anything and requests are signed,
//! what the signature was given for counts. By which way a request came, who traces it and what its client likes to read are
//! another thing each time and say nothing about whom it is for.

use std::sync::Arc;

use aws_lc_rs::digest;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::middleware::aws_sts::Signer;
use crate::middleware::{Identity, Placed, identity};

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
    /// What is said with these headers, by somebody who has proved who that is if that was needed, and with this signature.
    pub(super) fn of(headers: &HeaderMap, proven: Option<&Proven>, signer: Option<&Signer>) -> Self {
        let is_proof = |name: &HeaderName| proven.is_some_and(|proven| proven.is_in(name));
        let mut said: Vec<(&[u8], &[u8])> = headers
            .iter()
            .filter(|(name, _)| !is_passing(name.as_str()) && !is_proof(name))
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        // The order of names means nothing, and that of the values of one does.
        said.sort_by_key(|(name, _)| *name);
        let allowed = proven.and_then(|proven| proven.identity.allowed());
        said.extend(allowed.as_ref().map(|allowed| (&b""[..], &allowed[..])));
        // No header is called like that.
        said.extend(signer.filter(|_| proven.is_none()).map(|signer| (&b":signer"[..], signer.given_for())));
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

/// Who has proved to send a request, and where the server is shown that.
#[derive(Debug, Clone)]
pub(crate) struct Proven {
    identity: Arc<Identity>,
    placed: Placed,
}

impl Proven {
    /// Nothing when nobody had to prove anything.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let identity = Arc::clone(identity::of_token(&parts.extensions)?);
        Some(Self { identity, placed: parts.extensions.get::<Placed>().cloned().unwrap_or_default() })
    }

    fn is_in(&self, name: &HeaderName) -> bool {
        *name == AUTHORIZATION || self.placed.contains(name)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_about_one_request_makes_no_difference() {
        let with = |headers: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            Surroundings::of(&headers.iter().map(pair).collect(), None, None)
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

    #[test]
    fn what_a_proof_allows_counts_and_not_the_token_that_says_it() {
        let with = |claims: serde_json::Value, token: &'static str| {
            let serde_json::Value::Object(claims) = claims else { panic!("no claims") };
            let identity = Arc::new(Identity::from_claims(claims, token).unwrap());
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(token))]);
            Surroundings::of(&headers, Some(&Proven { identity, placed: Placed::default() }), None)
        };
        let own = with(json!({"sub": "ann", "scope": "all", "exp": 1, "jti": "a"}), "one");
        assert_eq!(with(json!({"sub": "ann", "scope": "all", "exp": 2, "jti": "b"}), "other"), own);
        assert_ne!(with(json!({"sub": "ann", "scope": "less", "exp": 1, "jti": "a"}), "one"), own);
    }
}
