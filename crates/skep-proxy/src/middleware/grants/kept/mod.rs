//! Credentials that were given are kept for a while, each for one user and one question.
//!
//! One request asks; whoever comes with the same question meanwhile waits for what it finds, a failure included. A
//! failure is not remembered, and neither is a credential that does not say until when it is good. None is kept for long,
//! so that what an issuer takes back is noticed.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::endpoint::GrantError;
use crate::middleware::identity::Identity;

/// How long a credential is kept at most.
const LONGEST: Duration = Duration::from_mins(10);
/// How long before its end a credential is not used any more, unless something else is said.
pub(crate) const MARGIN: Duration = Duration::from_secs(30);
/// How many are kept.
const MOST: usize = 4096;

/// Everything that the answer to a question depends on, in a form that tells nobody anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The question of somebody.
    pub(crate) fn of(identity: &Identity, question: &[&str]) -> Self {
        let issuer = identity.claims.get("iss").and_then(Value::as_str).unwrap_or_default();
        Self::digest([issuer, &identity.subject].into_iter().chain(question.iter().copied()))
    }

    /// The one question that we have ourselves.
    pub(crate) fn ours() -> Self {
        Self::digest([])
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            // With its length, so that no two lists of parts look alike.
            context.update(&part.len().to_be_bytes());
            context.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        Self(key)
    }
}

/// A credential, and how long it is good for if that is known.
#[derive(Clone)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) lifetime: Option<Duration>,
}

/// A credential that was given, and until when it is used.
#[derive(Clone)]
struct Usable<T> {
    value: T,
    until: Option<Instant>,
}

type Flight<T> = Shared<BoxFuture<'static, Result<Usable<T>, GrantError>>>;
type Flights<T> = Arc<Mutex<HashMap<Key, Flight<T>>>>;

/// The credentials.
#[derive(Clone)]
pub(crate) struct Kept<T: Clone> {
    flights: Flights<T>,
    margin: Duration,
}

/// Credentials are secrets.
impl<T: Clone> fmt::Debug for Kept<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kept").field("margin", &self.margin).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Kept<T> {
    /// Nothing yet. Credentials are used until so long before their end.
    pub(crate) fn new(margin: Duration) -> Self {
        Self { flights: Arc::default(), margin }
    }

    /// The answer to a question: one that is kept, or that somebody else waits for, or a new one.
    pub(crate) async fn get<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Result<T, GrantError>
    where
        F: Future<Output = Result<Given<T>, GrantError>> + Send + 'static,
    {
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        let waiting = self.join(key, ask);
        let answer = waiting.flight.clone().await;
        Ok(answer?.value)
    }

    /// The answer to a question, if it is kept.
    fn known(&self, key: Key) -> Option<T> {
        let flights = self.flights.lock();
        let answer = flights.get(&key)?.peek().filter(|answer| is_usable(answer))?;
        answer.as_ref().ok().map(|usable| usable.value.clone())
    }

    /// Forgets an answer that turned out to be of no use.
    pub(crate) fn forget(&self, key: Key) {
        self.flights.lock().remove(&key);
    }

    /// The same, unless there is another answer by now.
    pub(crate) fn forget_this(&self, key: Key, is_this: impl FnOnce(&T) -> bool) {
        let mut flights = self.flights.lock();
        let kept = flights.get(&key).and_then(|flight| flight.peek()).and_then(|answer| answer.as_ref().ok());
        if kept.is_some_and(|kept| is_this(&kept.value)) {
            flights.remove(&key);
        }
    }

    fn join<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Waiting<T>
    where
        F: Future<Output = Result<Given<T>, GrantError>> + Send + 'static,
    {
        let mut flights = self.flights.lock();
        let current = flights.get(&key).filter(|flight| flight.peek().is_none_or(is_usable)).cloned();
        let flight = current.unwrap_or_else(|| {
            if flights.len() >= MOST {
                make_room(&mut flights);
            }
            let (asked, margin) = (ask(), self.margin);
            let flight = async move { asked.await.map(|given| usable(given, margin)) }.boxed().shared();
            flights.insert(key, flight.clone());
            flight
        });
        Waiting { flights: Arc::clone(&self.flights), key, flight }
    }
}

fn usable<T>(given: Given<T>, margin: Duration) -> Usable<T> {
    let kept = given.lifetime.and_then(|lifetime| lifetime.min(LONGEST + margin).checked_sub(margin));
    Usable { value: given.value, until: kept.map(|kept| Instant::now() + kept) }
}

fn is_usable<T>(answer: &Result<Usable<T>, GrantError>) -> bool {
    answer.as_ref().is_ok_and(|usable| usable.until.is_some_and(|until| Instant::now() < until))
}

/// Drops what is of no use any more, or else what will be so first. Questions that are being asked stay.
fn make_room<T: Clone>(flights: &mut HashMap<Key, Flight<T>>) {
    flights.retain(|_, flight| flight.peek().is_none_or(is_usable));
    if flights.len() < MOST {
        return;
    }
    let end =
        |flight: &Flight<T>| flight.peek().and_then(|answer| answer.as_ref().ok().and_then(|usable| usable.until));
    let first = flights.iter().filter_map(|(key, flight)| Some((end(flight)?, *key))).min_by_key(|(end, _)| *end);
    if let Some((_, key)) = first {
        flights.remove(&key);
    }
}

/// Somebody who waits for an answer. The last one to go takes along what nobody can use.
struct Waiting<T: Clone> {
    flights: Flights<T>,
    key: Key,
    flight: Flight<T>,
}

impl<T: Clone> Drop for Waiting<T> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let is_ours = flights.get(&self.key).is_some_and(|flight| flight.ptr_eq(&self.flight));
        let is_over = match self.flight.peek() {
            Some(answer) => !is_usable(answer),
            // Nobody is left to ask on: the table and we hold the last two.
            None => self.flight.strong_count().is_none_or(|holders| holders <= 2),
        };
        if is_ours && is_over {
            flights.remove(&self.key);
        }
    }
}
