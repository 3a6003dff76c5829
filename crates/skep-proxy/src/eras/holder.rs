//! Whose something is that clients have here without a session.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::middleware::identity;

/// Who has something here: whom the chain has found a client to be, or else what it proves itself with to the server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Known(Arc<str>),
    Bearer(HeaderValue),
    Anybody,
}

impl Holder {
    /// Whoever sends a request.
    pub(crate) fn of(parts: &Parts) -> Self {
        match (identity::proven(&parts.extensions), parts.headers.get(AUTHORIZATION)) {
            (Some(caller), _) => Self::Known(Arc::clone(caller)),
            (None, Some(credentials)) => Self::Bearer(credentials.clone()),
            (None, None) => Self::Anybody,
        }
    }

    /// It as bytes, of which no two holders have the same.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Known(caller) => (b"known", caller.as_bytes()),
            Self::Bearer(credentials) => (b"bearer", credentials.as_bytes()),
            Self::Anybody => (b"anybody", b""),
        }
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Holder")
    }
}
