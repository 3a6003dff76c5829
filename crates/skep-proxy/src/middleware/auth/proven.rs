//! Signed tokens that were found good, so that a signature is checked once and not with every request.
//!
//! What is remembered of a token is that keys of the issuer have signed it, and whom it speaks about. That holds for as long
//! as the keys are the ones that it was checked with; whether its time has come is looked at every time. A token is known by
//! its digest, which tells nobody anything.

use std::sync::Arc;

use aws_lc_rs::digest;
use parking_lot::Mutex;

use super::token::{self, TokenError};
use crate::middleware::identity::Identity;
use crate::middleware::remembered::Remembered;

/// So many tokens are remembered for sure.
const MOST: usize = 512;
/// Longer tokens are not remembered, in bytes.
const LARGEST: usize = 4 << 10;

/// Tokens, and whom they speak about.
#[derive(Debug)]
pub(super) struct Proven(Mutex<Remembered<Digest, Known>>);

impl Default for Proven {
    fn default() -> Self {
        Self(Mutex::new(Remembered::new(MOST)))
    }
}

type Digest = [u8; 32];

#[derive(Debug, Clone)]
struct Known {
    identity: Arc<Identity>,
    /// The number of the keys that it was checked with.
    keys: u64,
}

impl Proven {
    /// Whom a token speaks about, if it was found good with these keys. Its time is checked once more.
    pub(super) fn find(&self, token: &str, keys: u64, now: f64) -> Option<Result<Arc<Identity>, TokenError>> {
        let known = self.0.lock().find(&digest(token));
        let Known { identity, .. } = known.filter(|known| known.keys == keys)?;
        Some(token::check_times(&identity.claims, now).map(|()| identity))
    }

    /// Remembers a token that was found good with these keys.
    pub(super) fn remember(&self, token: &str, keys: u64, identity: &Arc<Identity>) {
        if token.len() <= LARGEST {
            self.0.lock().add(digest(token), Known { identity: Arc::clone(identity), keys }, 1);
        }
    }
}

fn digest(token: &str) -> Digest {
    let mut digest = [0; 32];
    digest.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn identity(end: u32) -> Arc<Identity> {
        let Value::Object(claims) = json!({"sub": "ann", "exp": end}) else { panic!("no claims") };
        Arc::new(Identity::from_claims(claims, "t").unwrap())
    }

    #[test]
    fn a_token_is_known_by_all_of_it_while_its_keys_and_its_time_last() {
        let proven = Proven::default();
        let ann = identity(100);
        proven.remember("a.b.c", 1, &ann);
        assert!(Arc::ptr_eq(&proven.find("a.b.c", 1, 99.0).unwrap().unwrap(), &ann));
        assert!(proven.find("a.b.d", 1, 99.0).is_none(), "another signature is another token");
        assert!(proven.find("a.b.c", 2, 99.0).is_none(), "other keys may not have signed it");
        assert_eq!(proven.find("a.b.c", 1, 100.0).unwrap().unwrap_err(), TokenError::Expired);
    }

    #[test]
    fn a_long_token_is_not_remembered() {
        let (proven, long) = (Proven::default(), "x".repeat(LARGEST + 1));
        proven.remember(&long, 1, &identity(100));
        assert!(proven.find(&long, 1, 0.0).is_none());
    }
}
