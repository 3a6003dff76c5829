//! Service-account tokens: signed claims about an account, and perhaps about the pod, secret or node they live with.
//!
//! [`TokenAuthority`] signs and checks; what exists is asked through [`BoundObjects`]. Time is passed in, in seconds
//! since 1970, so that everything but the making of a key is a pure function.

mod claims;
pub mod discovery;
mod key;
mod objects;
mod request;
#[cfg(test)]
mod tests;
mod verify;

pub use claims::{Claims, KubernetesClaims, ObjectReference};
pub use key::{KeyError, SigningKey};
pub(in crate::auth) use objects::timestamp;
pub use objects::{BoundKind, BoundObjects, ObjectState};
pub use request::IssuedToken;
pub use verify::{TokenError, Verified};

/// The issuer of a cluster that has not been told another one.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

/// Signs and checks tokens.
#[derive(Debug)]
pub struct TokenAuthority {
    key: SigningKey,
    issuer: String,
    /// The audiences of this server. A token for none of them opens nothing here.
    audiences: Vec<String>,
    longest_seconds: Option<i64>,
}

impl TokenAuthority {
    /// An authority for [`DEFAULT_ISSUER`], which is its audience too.
    pub fn new(key: SigningKey) -> Self {
        let issuer = DEFAULT_ISSUER.to_owned();
        Self { key, audiences: vec![issuer.clone()], issuer, longest_seconds: None }
    }

    /// No token lives longer than this, whatever is asked for.
    #[must_use]
    pub fn with_longest_life(mut self, seconds: i64) -> Self {
        self.longest_seconds = Some(seconds);
        self
    }

    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }
}
