//! What the log decides: when a change is visible, which changes go together, and what follows when it fails.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::time::timeout;

/// A log that says what it was given and does what it is told.
struct Told {
    given: Sender<Vec<u64>>,
    orders: Receiver<Result<(), redb::Error>>,
}

impl Log for Told {
    fn write(&self, events: &[Event]) -> Result<(), redb::Error> {
        let _ = self.given.send(events.iter().map(|event| event.revision).collect());
        self.orders.recv().unwrap_or(Ok(()))
    }
}

/// A store, what its log is given, and the orders for the log.
fn told() -> (Store, Receiver<Vec<u64>>, Sender<Result<(), redb::Error>>) {
    let ((given, gets), (orders, obeys)) = (channel(), channel());
    let state = State::new(Vec::new(), FIRST_REVISION, HistoryLimits::default());
    (Store::start(state, Some(Box::new(Told { given, orders: obeys }))).unwrap(), gets, orders)
}

fn creation(store: &Store, name: &str) -> tokio::task::JoinHandle<Result<Committed, CommitError>> {
    let (store, key) = (store.clone(), pod("a", name));
    tokio::spawn(async move { store.commit(Change::Create { key, content: content("a") }).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_visible_only_when_it_is_durable() {
    let (store, given, orders) = told();
    let mut watch = store.watch(PODS, None, None).unwrap();
    let creation = creation(&store, "x");
    assert_eq!(given.recv().unwrap(), [2]);

    assert_eq!(store.get(&pod("a", "x")), None);
    assert_eq!(store.revision(), 1);
    assert_eq!(store.list(&Selection::all(PODS)).records, []);
    assert!(timeout(Duration::from_millis(20), watch.next()).await.is_err());
    assert_eq!(watch.progress(), Ok(1));
    assert!(!creation.is_finished());

    orders.send(Ok(())).unwrap();
    assert_eq!(creation.await.unwrap().unwrap().revision, 2);
    // Whoever has the answer can read what was written.
    assert!(store.get(&pod("a", "x")).is_some());
    assert_eq!(watch.next().await.unwrap().revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_wait_are_written_together() {
    let (store, given, orders) = told();
    let first = creation(&store, "first");
    assert_eq!(given.recv().unwrap(), [2]);
    let mut waiting: Vec<_> = (0..100).map(|number| creation(&store, &number.to_string())).collect();
    // Two for the same object: one of them is refused, and told so only after the other is durable.
    waiting.push(creation(&store, "7"));
    while store.requests.capacity() > WAITING_CHANGES - waiting.len() {
        tokio::task::yield_now().await;
    }
    orders.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(given.recv().unwrap(), (3..103).collect::<Vec<u64>>());
    assert!(waiting.iter().all(|creation| !creation.is_finished()));
    orders.send(Ok(())).unwrap();
    let mut refused = 0;
    for creation in waiting {
        refused += usize::from(creation.await.unwrap().is_err());
    }
    assert_eq!(refused, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_written_did_not_happen_and_is_the_last() {
    let (store, given, orders) = told();
    assert_eq!(store.health(), Ok(()));
    orders.send(Err(redb::Error::Io(io::Error::other("no space left on device")))).unwrap();
    let error = creation(&store, "x").await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Storage { .. }));
    assert!(error.to_string().contains("no space left on device"), "{error}");
    assert_eq!((store.get(&pod("a", "x")), store.revision()), (None, 1));

    assert_eq!(creation(&store, "y").await.unwrap().unwrap_err(), error);
    assert_eq!(store.health(), Err(error));
    assert_eq!(given.try_iter().count(), 1);
    assert_eq!(store.revision(), 1);
    store.close().await;
}
