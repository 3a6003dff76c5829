//! Credentials that were given are kept for a while, each for one user and one question.
//!
//! One request asks; whoever comes with the same question meanwhile waits for what it finds, a failure included. A
//! failure is not remembered, and neither is a credential that does not say until when it is good. None is kept for long,
//! so that what an issuer takes back is noticed.

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
        let waiting = self.join(key, ask);
        let answer = waiting.flight.clone().await;
        Ok(answer?.value)
    }

    /// Forgets an answer that turned out to be of no use.
    pub(crate) fn forget(&self, key: Key) {
        self.flights.lock().remove(&key);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    fn somebody(issuer: &str, subject: &str) -> Identity {
        let claims = json!({"iss": issuer, "sub": subject});
        let Value::Object(claims) = claims else { panic!("{claims} are no claims") };
        Identity::from_claims(claims, "token").unwrap()
    }

    fn key(subject: &str) -> Key {
        Key::of(&somebody("https://i", subject), &["audience"])
    }

    /// Gives numbers, one after the other.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Counter {
        fn asked(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }

        fn give(&self, seconds: Option<u64>) -> future::Ready<Result<Given<usize>, GrantError>> {
            let value = self.0.fetch_add(1, Ordering::SeqCst);
            future::ready(Ok(Given { value, lifetime: seconds.map(Duration::from_secs) }))
        }
    }

    #[test]
    fn no_two_questions_look_alike() {
        let keys = [
            Key::of(&somebody("i", "ann"), &["a", "b"]),
            Key::of(&somebody("i", "ann"), &["ab"]),
            Key::of(&somebody("i", "ann"), &["a", "b", ""]),
            Key::of(&somebody("i", "bob"), &["a", "b"]),
            Key::of(&somebody("j", "ann"), &["a", "b"]),
            Key::of(&somebody("ia", "nn"), &["a", "b"]),
        ];
        let apart: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(apart.len(), keys.len());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_until_shortly_before_its_end_by_its_user_alone() {
        let (kept, counter) = (Kept::new(MARGIN), Counter::default());
        let get = async |name: &str, seconds| kept.get(key(name), || counter.give(seconds)).await.unwrap();
        assert_eq!((get("ann", Some(90)).await, get("ann", Some(90)).await), (0, 0));
        assert_eq!(get("bob", Some(90)).await, 1);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(get("ann", Some(90)).await, 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(get("ann", Some(90)).await, 2);
        // What says nothing about its end, or ends at once, is not kept.
        for lifetime in [None, Some(0), Some(30)] {
            let before = counter.asked();
            assert_ne!(get("eve", lifetime).await, get("eve", lifetime).await);
            assert_eq!(counter.asked(), before + 2, "{lifetime:?}");
        }
        // Nothing is kept for very long.
        let first = get("zoe", Some(1 << 30)).await;
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(get("zoe", Some(90)).await, first);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_ne!(get("zoe", Some(90)).await, first);
        assert!(kept.flights.lock().len() <= 3);
    }

    #[tokio::test]
    async fn one_asks_and_all_get_what_it_finds() {
        for is_good in [true, false] {
            let (kept, counter) = (Kept::new(MARGIN), Counter::default());
            let (answer, answered) = oneshot::channel::<()>();
            let mut answered = Some(answered);
            let mut all = Vec::new();
            for _ in 0..50 {
                let wait = answered.take();
                let asked = &counter;
                all.push(kept.get(key("ann"), || {
                    let given = asked.give(Some(60)).into_inner();
                    async move {
                        let _ = wait.unwrap().await;
                        if is_good { given } else { Err(GrantError::Refused) }
                    }
                }));
            }
            let all = future::join_all(all);
            let answering = async { answer.send(()).unwrap() };
            let (found, ()) = future::join(all, answering).await;
            assert_eq!(counter.asked(), 1);
            assert!(found.iter().all(|answer| answer.is_ok() == is_good));
            // A failure is not remembered.
            assert!(kept.get(key("ann"), || counter.give(None)).await.is_ok());
            assert_eq!(counter.asked(), if is_good { 1 } else { 2 });
        }
    }

    #[tokio::test]
    async fn whoever_goes_away_does_not_take_the_answer_along() {
        let (kept, counter) = (Kept::<usize>::new(MARGIN), Counter::default());
        let (answer, answered) = oneshot::channel::<()>();
        let mut first = Box::pin(kept.get(key("ann"), || async {
            let _ = answered.await;
            Ok(Given { value: 7, lifetime: None })
        }));
        assert!(future::poll_immediate(&mut first).await.is_none());
        let mut second = Box::pin(kept.get(key("ann"), || counter.give(None)));
        assert!(future::poll_immediate(&mut second).await.is_none());
        drop(first);
        answer.send(()).unwrap();
        assert_eq!((second.await.unwrap(), counter.asked()), (7, 0));
        // A question that nobody waits for any more is not asked on.
        let mut alone = Box::pin(kept.get(key("ann"), future::pending));
        assert!(future::poll_immediate(&mut alone).await.is_none());
        drop(alone);
        assert!(kept.flights.lock().is_empty());
        assert!(kept.get(key("ann"), || counter.give(None)).await.is_ok());
    }

    #[tokio::test]
    async fn so_many_are_kept_and_no_more() {
        let (kept, counter) = (Kept::new(MARGIN), Counter::default());
        let lifetime = |number: usize| Some(100 + u64::try_from(number).unwrap() % 200);
        for number in 0..MOST + 10 {
            kept.get(key(&number.to_string()), || counter.give(lifetime(number))).await.unwrap();
        }
        assert_eq!(kept.flights.lock().len(), MOST);
        // The first to end has gone first.
        assert!(!kept.flights.lock().contains_key(&key("0")));
        assert!(kept.flights.lock().contains_key(&key("199")));
        kept.forget(key("199"));
        assert!(!kept.flights.lock().contains_key(&key("199")));
    }
}
