//! Who gets which answer, and for how long.

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
