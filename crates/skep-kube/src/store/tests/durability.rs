//! What the log decides: when a change is visible, which changes go together, and what follows when it fails.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::time::timeout;

/// A log that says what it was given and does what it is told.
struct Told {
    given: Sender<Vec<u64>>,
    orders: Receiver<Result<(), OpenError>>,
    /// Where it can go on, once it can.
    resumes: Receiver<u64>,
}

impl Log for Told {
    fn write(&mut self, events: &[Event]) -> Result<(), OpenError> {
        let _ = self.given.send(events.iter().map(|event| event.revision).collect());
        self.orders.recv().unwrap_or(Ok(()))
    }

    fn resume(&mut self) -> Result<u64, OpenError> {
        self.resumes.try_recv().map_err(|_| full())
    }
}

fn full() -> OpenError {
    OpenError::Unreadable { path: "data".into(), source: io::Error::other("no space left on device") }
}

/// What a log is given, and who tells it what to do.
struct Hands {
    given: Receiver<Vec<u64>>,
    orders: Sender<Result<(), OpenError>>,
    resume: Sender<u64>,
}

fn told() -> (Store, Hands) {
    let ((given, gets), (orders, obeys), (resume, resumes)) = (channel(), channel(), channel());
    let state = State::new(Vec::new(), FIRST_REVISION, HistoryLimits::default());
    let store = Store::start(state, Some(Box::new(Told { given, orders: obeys, resumes }))).unwrap();
    (store, Hands { given: gets, orders, resume })
}

/// Waits until changes can be made.
async fn until_well(store: &Store) {
    let well = async {
        while store.health().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_mins(1), well).await.expect("the store goes on");
}

fn creation(store: &Store, name: &str) -> tokio::task::JoinHandle<Result<Committed, CommitError>> {
    let (store, key) = (store.clone(), pod("a", name));
    tokio::spawn(async move { store.commit(Change::Create { key, content: content("a") }).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_visible_only_when_it_is_durable() {
    let (store, log) = told();
    let mut watch = store.watch(PODS, None, None).unwrap();
    let creation = creation(&store, "x");
    assert_eq!(log.given.recv().unwrap(), [2]);

    assert_eq!(store.get(&pod("a", "x")), None);
    assert_eq!(store.revision(), 1);
    assert_eq!(store.list(&Selection::all(PODS)).records, []);
    assert!(timeout(Duration::from_millis(20), watch.next()).await.is_err());
    assert_eq!(watch.progress(), Ok(1));
    assert!(!creation.is_finished());

    log.orders.send(Ok(())).unwrap();
    assert_eq!(creation.await.unwrap().unwrap().revision, 2);
    // Whoever has the answer can read what was written.
    assert!(store.get(&pod("a", "x")).is_some());
    assert_eq!(watch.next().await.unwrap().revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_wait_are_written_together() {
    let (store, log) = told();
    let first = creation(&store, "first");
    assert_eq!(log.given.recv().unwrap(), [2]);
    let mut waiting: Vec<_> = (0..100).map(|number| creation(&store, &number.to_string())).collect();
    // Two for the same object: one of them is refused, and told so only after the other is durable.
    waiting.push(creation(&store, "7"));
    while store.requests.capacity() > WAITING_CHANGES - waiting.len() {
        tokio::task::yield_now().await;
    }
    log.orders.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(log.given.recv().unwrap(), (3..103).collect::<Vec<u64>>());
    assert!(waiting.iter().all(|creation| !creation.is_finished()));
    log.orders.send(Ok(())).unwrap();
    let mut refused = 0;
    for creation in waiting {
        refused += usize::from(creation.await.unwrap().is_err());
    }
    assert_eq!(refused, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_written_did_not_happen_and_is_the_last_for_now() {
    let (store, log) = told();
    assert_eq!(store.health(), Ok(()));
    log.orders.send(Err(full())).unwrap();
    let error = creation(&store, "x").await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Storage { .. }));
    assert!(error.to_string().contains("no space left on device"), "{error}");
    assert_eq!((store.get(&pod("a", "x")), store.revision()), (None, 1));

    assert_eq!(creation(&store, "y").await.unwrap().unwrap_err(), error);
    assert_eq!(store.health(), Err(error));
    assert_eq!(log.given.try_iter().count(), 1);
    assert_eq!(store.revision(), 1);

    log.resume.send(1).unwrap();
    until_well(&store).await;
    log.orders.send(Ok(())).unwrap();
    assert_eq!(creation(&store, "y").await.unwrap().unwrap().revision, 2);
    assert_eq!(log.given.recv().unwrap(), [2]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_written_although_the_disk_said_no_happened() {
    let (store, log) = told();
    let mut watch = store.watch(PODS, None, None).unwrap();
    log.orders.send(Err(full())).unwrap();
    creation(&store, "x").await.unwrap().unwrap_err();
    assert_eq!(store.get(&pod("a", "x")), None);
    log.resume.send(2).unwrap();
    assert_eq!(timeout(Duration::from_mins(1), watch.next()).await.unwrap().unwrap().revision, 2);
    assert!(store.get(&pod("a", "x")).is_some());
    until_well(&store).await;
    log.orders.send(Ok(())).unwrap();
    assert_eq!(creation(&store, "x").await.unwrap().unwrap_err(), CommitError::AlreadyExists);
    assert_eq!(creation(&store, "y").await.unwrap().unwrap().revision, 3);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_trouble_can_be_closed() {
    let (store, log) = told();
    log.orders.send(Err(full())).unwrap();
    creation(&store, "x").await.unwrap().unwrap_err();
    store.close().await;
    assert!(matches!(store.health(), Err(CommitError::Storage { .. })));
}
