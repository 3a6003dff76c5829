//! The one thread that changes the store.
//!
//! It takes every change that is waiting, checks each against the current objects and the changes before it, writes
//! them in one transaction, makes them visible, and only then answers. While it waits for the disk the next changes
//! gather, so that the number of writes to the disk does not grow with the number of writers.
//!
//! A write that fails is the end of the transaction that it is in, and of those after it until the log can go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::change::{Change, CommitError, Committed};
use super::disk::OpenError;
use super::event::{Changed, Event};
use super::index::Index;
use super::key::Key;
use super::record::{Content, Record};
use super::state::State;
use super::trouble::{Telling, Trouble};

/// How many changes may wait. Beyond that, writers wait to be let in.
pub(super) const WAITING_CHANGES: usize = 1024;
/// When a transaction is full.
const BATCH_CHANGES: usize = 512;
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How often requests are looked for while none can be granted.
const TROUBLED_PAUSE: Duration = Duration::from_millis(20);

/// Where changes become durable.
pub(super) trait Log: Send {
    /// Writes the events, all or none. They are durable when this returns.
    fn write(&mut self, events: &[Event]) -> Result<(), OpenError>;

    /// After a write that failed, finds out whether it can go on, and which revision is durable.
    fn resume(&mut self) -> Result<u64, OpenError>;
}

pub(super) type Outcome = Result<Committed, CommitError>;
pub(super) type Answer = oneshot::Sender<Outcome>;

#[derive(Debug)]
pub(super) enum Request {
    Commit { change: Change, answer: Answer },
    Close { done: oneshot::Sender<()> },
}

pub(super) struct Writer {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) state: Arc<RwLock<State>>,
    pub(super) published: watch::Sender<u64>,
    /// None: memory only.
    pub(super) log: Option<Box<dyn Log>>,
    /// There while nothing can be written.
    pub(super) trouble: Option<Trouble>,
    pub(super) telling: Telling,
}

impl Writer {
    /// Works until the store is closed, or nobody holds it any more.
    pub(super) fn run(mut self) {
        let mut closing = None;
        while closing.is_none() {
            let Some(first) = self.next() else { break };
            let mut batch = Batch::new(self.state.read().revision);
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Commit { change, answer } => batch.add(change, answer, &self.state.read().index),
                    Request::Close { done } => {
                        closing = Some(done);
                        break;
                    }
                }
                next = if batch.is_full() { None } else { self.requests.try_recv().ok() };
            }
            self.commit(batch);
        }
        // Those who wait for the end may open the folder again at once.
        drop(self.log);
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    /// The next request. While nothing can be written, the log is tried meanwhile.
    fn next(&mut self) -> Option<Request> {
        while let Some(trouble) = &self.trouble {
            if trouble.is_to_be_tried() {
                self.resume();
                continue;
            }
            match self.requests.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::thread::sleep(TROUBLED_PAUSE),
            }
        }
        self.requests.blocking_recv()
    }

    /// Goes on where the log says it ended. What had failed may be there after all.
    fn resume(&mut self) {
        let (Some(log), Some(trouble)) = (&mut self.log, &mut self.trouble) else { return };
        let begun = Instant::now();
        let revision = match log.resume() {
            Ok(revision) => revision,
            Err(error) => {
                trouble.goes_on(&error, begun.elapsed());
                self.state.write().failure = Some(trouble.cause.clone());
                return;
            }
        };
        let uncertain = self.trouble.take().map(Trouble::ends).unwrap_or_default();
        if uncertain.last().is_some_and(|event| event.revision == revision) {
            self.publish(uncertain);
        }
        self.state.write().failure = None;
    }

    fn commit(&mut self, mut batch: Batch) {
        if self.trouble.is_none()
            && let Some(log) = self.log.as_mut().filter(|_| !batch.events.is_empty())
            && let Err(error) = log.write(&batch.events)
        {
            let trouble = Trouble::new(&error, std::mem::take(&mut batch.events), &mut self.telling);
            self.state.write().failure = Some(trouble.cause.clone());
            self.trouble = Some(trouble);
        }
        if let Some(Trouble { cause, .. }) = &self.trouble {
            for (answer, _) in batch.answers {
                let _ = answer.send(Err(CommitError::Storage { cause: cause.clone() }));
            }
            return;
        }
        self.publish(batch.events);
        for (answer, outcome) in batch.answers {
            let _ = answer.send(outcome);
        }
    }

    fn publish(&self, events: Vec<Event>) {
        let Some(revision) = events.last().map(|event| event.revision) else { return };
        self.state.write().apply(events);
        self.published.send_replace(revision);
    }
}

/// Changes that become durable together.
struct Batch {
    /// The revision of the last change.
    revision: u64,
    events: Vec<Event>,
    /// The objects as they are after the changes so far, where they differ from the index.
    changed: HashMap<Key, Option<Arc<Record>>>,
    /// Refusals wait as well: one that was caused by a change of this batch is only true when the batch is durable.
    answers: Vec<(Answer, Outcome)>,
    bytes: usize,
}

impl Batch {
    fn new(revision: u64) -> Self {
        Self { revision, events: Vec::new(), changed: HashMap::new(), answers: Vec::new(), bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.answers.len() >= BATCH_CHANGES || self.bytes >= BATCH_BYTES
    }

    fn add(&mut self, change: Change, answer: Answer, index: &Index) {
        self.bytes += change.size();
        let current = match self.changed.get(change.key()) {
            Some(changed) => changed.clone(),
            None => index.get(change.key()).cloned(),
        };
        let outcome = decide(change, current, self.revision + 1, index).map(|event| {
            self.revision = event.revision;
            self.changed.insert(event.key().clone(), event.after().cloned());
            let committed = Committed { revision: event.revision, record: event.record().clone() };
            self.events.push(event);
            committed
        });
        self.answers.push((answer, outcome));
    }
}

/// What a change does to an object, or why it must not.
fn decide(change: Change, current: Option<Arc<Record>>, revision: u64, index: &Index) -> Result<Event, CommitError> {
    let change = match change {
        Change::Create { key, content } => {
            if current.is_some() {
                return Err(CommitError::AlreadyExists);
            }
            Changed::Created { after: record(index.intern(key), content, revision, revision) }
        }
        Change::Update { expected, mut content, .. } => {
            let before = expect(current, expected)?;
            if content.labels == before.labels {
                content.labels = before.labels.clone();
            }
            let after = record(before.key.clone(), content, revision, before.created);
            Changed::Updated { before, after }
        }
        Change::Delete { expected, .. } => Changed::Deleted { before: expect(current, expected)? },
    };
    Ok(Event { revision, change })
}

fn expect(current: Option<Arc<Record>>, expected: u64) -> Result<Arc<Record>, CommitError> {
    let current = current.ok_or(CommitError::NotFound)?;
    if current.revision != expected {
        return Err(CommitError::Conflict { current: current.revision });
    }
    Ok(current)
}

fn record(key: Key, content: Content, revision: u64, created: u64) -> Arc<Record> {
    Arc::new(Record { key, revision, created, object: content.object, labels: content.labels })
}
