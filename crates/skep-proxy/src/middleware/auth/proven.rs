//! Signed tokens that were found good, so that a signature is checked once and not with every request.
//!
//! What is remembered of a token is that keys of the issuer have signed it, and whom it speaks about. That holds for as long
//! as the keys are the ones that it was checked with; whether its time has come is looked at every time. A token is known by
//! its digest, which tells nobody anything.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest;
use parking_lot::Mutex;

use super::token::{self, TokenError};
use crate::middleware::identity::Identity;

/// So many tokens are remembered for sure, and at most twice as many.
const MOST: usize = 512;
/// Longer tokens are not remembered, in bytes.
const LARGEST: usize = 4 << 10;

/// Tokens, and whom they speak about.
#[derive(Debug, Default)]
pub(super) struct Proven(Mutex<Generations>);

/// What was used lately is young. When that is too much, it is what was used before, and the rest is forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Digest, Known>,
    old: HashMap<Digest, Known>,
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
        let digest = digest(token);
        let mut generations = self.0.lock();
        let known = match generations.young.get(&digest) {
            Some(known) => known.clone(),
            None => generations.old.remove(&digest).inspect(|known| generations.add(digest, known.clone()))?,
        };
        drop(generations);
        let Known { identity, .. } = Some(known).filter(|known| known.keys == keys)?;
        Some(token::check_times(&identity.claims, now).map(|()| identity))
    }

    /// Remembers a token that was found good with these keys.
    pub(super) fn remember(&self, token: &str, keys: u64, identity: &Arc<Identity>) {
        if token.len() <= LARGEST {
            self.0.lock().add(digest(token), Known { identity: Arc::clone(identity), keys });
        }
    }
}

impl Generations {
    fn add(&mut self, digest: Digest, known: Known) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, known);
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
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let (proven, ann) = (Proven::default(), identity(100));
        proven.remember("used", 1, &ann);
        proven.remember(&"x".repeat(LARGEST + 1), 1, &ann);
        for number in 0..10 * MOST {
            proven.remember(&number.to_string(), 1, &ann);
            assert!(proven.find("used", 1, 0.0).is_some(), "{number}");
        }
        let generations = proven.0.lock();
        assert!(generations.young.len() <= MOST && generations.old.len() <= MOST);
        drop(generations);
        assert!(proven.find("0", 1, 0.0).is_none());
        assert!(proven.find(&"x".repeat(LARGEST + 1), 1, 0.0).is_none());
    }
}
