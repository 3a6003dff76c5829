//! Tokens that were good when they were last asked about. Those who come with one do not have to wait for those who come
//! with any word at all.

use std::collections::{HashSet, VecDeque};

use aws_lc_rs::digest;
use parking_lot::Mutex;

/// How many are known. The oldest one is forgotten first.
const MOST: usize = 4096;

type Digest = [u8; 32];

/// The tokens, in a form that is of no use to anybody.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<(HashSet<Digest>, VecDeque<Digest>)>);

impl Known {
    pub(super) fn has(&self, token: &str) -> bool {
        self.0.lock().0.contains(&digest(token))
    }

    /// Notes whether a token is good.
    pub(super) fn note(&self, token: &str, is_good: bool) {
        let digest = digest(token);
        let (known, order) = &mut *self.0.lock();
        if !is_good {
            if known.remove(&digest) {
                order.retain(|other| *other != digest);
            }
        } else if known.insert(digest) {
            order.push_back(digest);
            if order.len() > MOST
                && let Some(oldest) = order.pop_front()
            {
                known.remove(&oldest);
            }
        }
    }
}

fn digest(token: &str) -> Digest {
    let mut known = Digest::default();
    known.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_what_is_not_good_at_once() {
        let known = Known::default();
        for number in 0..=MOST {
            known.note(&number.to_string(), true);
        }
        assert!(!known.has("0") && known.has("1") && known.has(&MOST.to_string()));
        known.note("1", false);
        known.note("unknown", false);
        assert!(!known.has("1") && !known.has("unknown"));
        let (set, order) = &*known.0.lock();
        assert_eq!((set.len(), order.len()), (MOST - 1, MOST - 1));
    }
}
