//! What was sent, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::Value;
use skep_operator::metrics::Asked;
use tokio::sync::oneshot;

/// One request.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What it asks for, in the words of roles.
    pub asked: Asked,
    pub method: Method,
    pub path: String,
    pub content_type: String,
    pub is_watch: bool,
    pub at: Instant,
    /// Null when there was no body.
    pub body: Value,
    /// The answer, once it has come.
    pub code: Option<u16>,
}

impl Sent {
    pub(super) fn new(asked: Asked, parts: &Parts, body: &[u8]) -> Self {
        let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
        Self {
            asked,
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            content_type: content_type.unwrap_or_default().to_owned(),
            is_watch: parts.uri.query().is_some_and(|query| query.contains("watch=")),
            at: Instant::now(),
            body: if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() },
            code: None,
        }
    }

    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }
}

/// Everything that was sent.
#[derive(Clone, Debug, Default)]
pub struct Record {
    sent: Arc<Mutex<Vec<Sent>>>,
    stop: Arc<Mutex<Option<Stop>>>,
}

#[derive(Debug)]
struct Stop {
    end: String,
    arrived: oneshot::Sender<()>,
    go: oneshot::Receiver<()>,
}

/// A write that is stopped on its way, or will be. It goes on when this is dropped.
#[derive(Debug)]
pub struct Stopped {
    arrived: oneshot::Receiver<()>,
    _go: oneshot::Sender<()>,
}

impl Stopped {
    /// Waits until the write is there.
    pub async fn arrived(&mut self) {
        (&mut self.arrived).await.unwrap();
    }
}

impl Record {
    /// The writes so far, events aside: those are told in the background.
    pub fn writes(&self) -> Vec<Sent> {
        let sent = self.sent.lock();
        sent.iter().filter(|sent| sent.is_write() && !sent.path.contains("/events")).cloned().collect()
    }

    /// How often each verb was used so far.
    pub fn verbs(&self) -> BTreeMap<&'static str, usize> {
        let mut verbs = BTreeMap::new();
        for sent in self.sent.lock().iter() {
            *verbs.entry(sent.asked.verb).or_default() += 1;
        }
        verbs
    }

    /// What was listed or watched so far, by the names of resources.
    pub fn watched(&self) -> BTreeSet<String> {
        let sent = self.sent.lock();
        let looks = sent.iter().filter(|sent| matches!(sent.asked.verb, "list" | "watch"));
        looks.map(|sent| sent.asked.resource.clone()).collect()
    }

    /// The writes to paths that end like this.
    pub fn writes_to(&self, end: &str) -> Vec<Sent> {
        self.writes().into_iter().filter(|sent| sent.path.ends_with(end)).collect()
    }

    /// The writes so far, each with its answer. A write shows in the cluster before its answer is here.
    pub async fn answered_writes(&self) -> Vec<Sent> {
        loop {
            let writes = self.writes();
            if writes.iter().all(|sent| sent.code.is_some()) {
                return writes;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the next write to a path that ends like this.
    pub fn stop(&self, end: &str) -> Stopped {
        let (arrived, on_arrival) = oneshot::channel();
        let (release, go) = oneshot::channel();
        *self.stop.lock() = Some(Stop { end: end.to_owned(), arrived, go });
        Stopped { arrived: on_arrival, _go: release }
    }

    pub(super) async fn note(&self, sent: Sent) -> usize {
        let stops = |stop: &mut Stop| sent.is_write() && sent.path.ends_with(&stop.end);
        let stop = self.stop.lock().take_if(stops);
        let number = {
            let mut all = self.sent.lock();
            all.push(sent);
            all.len() - 1
        };
        if let Some(stop) = stop {
            let _ = stop.arrived.send(());
            // A test that has gone away stops nothing.
            let _ = stop.go.await;
        }
        number
    }

    pub(super) fn answered(&self, number: usize, code: u16) {
        self.sent.lock()[number].code = Some(code);
    }
}
