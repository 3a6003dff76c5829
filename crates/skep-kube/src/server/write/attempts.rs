//! Writes that name no revision: whoever does not mean one state of an object does not care that it changes, and is not
//! refused because it did.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard};

use crate::status::{ApiError, Reason};
use crate::store::Key;

/// How long a write is made anew. Somebody gets through each time, so that only a very long queue can take this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Objects share queues; that two busy ones do is a matter of speed alone.
const QUEUES: usize = 64;

/// Where writers of the same object wait for each other once they have met. Without it, a crowd would spend the square
/// of its number in attempts.
#[derive(Debug)]
pub struct Queues {
    hasher: RandomState,
    queues: [Mutex<()>; QUEUES],
}

impl Default for Queues {
    fn default() -> Self {
        Self { hasher: RandomState::new(), queues: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Queues {
    #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash do")]
    fn of(&self, key: &Key) -> &Mutex<()> {
        &self.queues[self.hasher.hash_one(key) as usize % QUEUES]
    }
}

/// The attempts at one write.
pub(super) struct Attempts<'a> {
    give_up: Instant,
    turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> Attempts<'a> {
    pub(super) fn start() -> Self {
        Self { give_up: Instant::now() + PATIENCE, turn: None }
    }

    /// Whether another attempt makes sense after this failure of a commit.
    pub(super) fn go_on(&self, failure: &ApiError) -> bool {
        let lost_a_race = failure.is_about_a_change() || failure.reason == Reason::AlreadyExists;
        lost_a_race && Instant::now() < self.give_up
    }

    /// Waits for the others who write the object, and keeps the turn to the end. Not for writes that lead to others:
    /// those could wait for each other.
    pub(super) async fn take_turn(&mut self, queues: &'a Queues, key: &Key) {
        if self.turn.is_none() {
            self.turn = Some(queues.of(key).lock().await);
        }
    }
}
