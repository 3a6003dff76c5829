//! Whose something is that clients have here without a session: states, tasks, streams, calls that wait, and sessions at the
//! server.
//!
//! That is whom the chain has found a client to be. Where nobody had to prove anything, it is what the client proves itself
//! with to the server: the headers that carry credentials, `Authorization`, `Cookie` and `X-Api-Key`, and no others. What else a
//! request says about itself, such as how it came here and how it is traced, is another thing each time, so that it would
//! make somebody else of the same client. What we set ourselves, for everybody alike, says nothing about a client: strangers
//! would be one then. Steps of the chain that put other credentials in place of the client's know who it is.

use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::middleware::{Ours, identity};

/// Headers that carry credentials.
pub(crate) static CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, HeaderName::from_static("x-api-key")];

/// Who has something here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    Known(Arc<str>),
    /// Whoever has these credentials.
    Bearer(Arc<[u8]>),
    Anybody,
}

impl Holder {
    /// Whoever sends a request.
    pub(crate) fn of(parts: &Parts) -> Self {
        Self::new(identity::proven(&parts.extensions), &parts.headers, parts.extensions.get::<Ours>())
    }

    /// Somebody who has proved to be this, if that was needed, and who says this to the server, as far as we do not.
    fn new(caller: Option<&Arc<str>>, headers: &HeaderMap, ours: Option<&Ours>) -> Self {
        if let Some(caller) = caller {
            return Self::Known(Arc::clone(caller));
        }
        let is_ours = |name: &HeaderName| ours.is_some_and(|ours| ours.contain(name));
        let mut credentials = Vec::new();
        for (number, name) in (0_u8..).zip(&CREDENTIALS).filter(|(_, name)| !is_ours(name)) {
            for value in headers.get_all(name) {
                credentials.push(number);
                credentials.extend_from_slice(&value.len().to_be_bytes());
                credentials.extend_from_slice(value.as_bytes());
            }
        }
        if credentials.is_empty() { Self::Anybody } else { Self::Bearer(credentials.into()) }
    }

    /// Whether it can be told from others.
    pub(super) fn is_known(&self) -> bool {
        *self != Self::Anybody
    }

    /// It as bytes, of which no two holders have the same.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Known(caller) => (b"known", caller.as_bytes()),
            Self::Bearer(credentials) => (b"bearer", credentials),
            Self::Anybody => (b"anybody", b""),
        }
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_known() { "Holder(known)" } else { "Holder(anybody)" })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_client_is_what_it_proves_itself_with() {
        let with = |headers: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            Holder::new(None, &headers.iter().map(pair).collect(), None)
        };
        assert_eq!(with(&[("cf-ray", "1"), ("user-agent", "a")]), Holder::Anybody);
        let ann = with(&[("authorization", "ann")]);
        assert_eq!(with(&[("authorization", "ann"), ("x-amzn-trace-id", "1"), ("x-b3-traceid", "2")]), ann);
        let others = [
            with(&[("authorization", "bob")]),
            with(&[("cookie", "ann")]),
            with(&[("x-api-key", "ann")]),
            with(&[("authorization", "ann"), ("cookie", "a=b")]),
            with(&[("authorization", "a"), ("authorization", "nn")]),
        ];
        assert!(others.iter().all(|other| *other != ann && other.is_known()));
        let proven = Arc::from("ann");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("made for this request"))]);
        assert_eq!(Holder::new(Some(&proven), &headers, None), Holder::Known(proven));
    }
}
