//! A client that began with a handshake: what was agreed on, and what is under way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::changes::{Change, Listener};
use super::era::unsupported;
use super::events::EventStream;
use super::log_level::LogLevel;
use super::message::{self, Fault, INTERNAL_ERROR, INVALID_REQUEST, Members, Request};
use super::methods;
use super::outbox::Outbox;
use super::revision::Revision;
use super::running::Running;
use super::{Demo, limits};

/// How long a finished stream can still be resumed.
const FINISHED_STREAM_AGE: Duration = Duration::from_mins(5);

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    demo: Arc<Demo>,
    agreed: OnceLock<Agreed>,
    log_level: Mutex<LogLevel>,
    watched: Mutex<BTreeSet<String>>,
    questions: Mutex<HashMap<String, oneshot::Sender<Result<Value, Fault>>>>,
    pub(crate) running: Running,
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
    next: AtomicU64,
    used: Mutex<Instant>,
    outbox: Outbox,
    pub(crate) ended: CancellationToken,
}

/// What the handshake settled.
#[derive(Debug)]
struct Agreed {
    revision: Revision,
    capabilities: Members,
}

impl Session {
    /// A session whose messages that belong to no request go to `outbox`.
    pub(crate) fn new(demo: &Arc<Demo>, outbox: Outbox, ended: CancellationToken) -> Arc<Self> {
        let session = Arc::new(Self {
            demo: Arc::clone(demo),
            agreed: OnceLock::new(),
            log_level: Mutex::new(LogLevel::Debug),
            watched: Mutex::default(),
            questions: Mutex::default(),
            running: Running::default(),
            streams: Mutex::default(),
            next: AtomicU64::new(1),
            used: Mutex::new(Instant::now()),
            outbox,
            ended,
        });
        // From now on, and not from when the task first runs.
        let changes = demo.changes.listen();
        demo.spawn(Arc::clone(&session).announce_changes(changes));
        session
    }

    /// A session whose streams can be resumed, the one of messages that belong to no request among them.
    pub(crate) fn resumable(demo: &Arc<Demo>) -> Arc<Self> {
        let ended = demo.stop.child_token();
        let stream = Arc::new(EventStream::new(0, ended.clone()));
        let session = Self::new(demo, Outbox::Stream(Arc::clone(&stream)), ended);
        session.streams.lock().insert(0, stream);
        session
    }

    /// The handshake.
    pub(crate) fn initialize(&self, params: &Members) -> Result<Value, Fault> {
        let Some(requested) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(Fault::invalid_params("protocolVersion is missing"));
        };
        let revision = Revision::parse(requested)
            .filter(|revision| !revision.is_stateless() && self.demo.spoken.has(*revision))
            .or(self.demo.spoken.newest_with_handshake())
            .ok_or_else(|| unsupported(requested, self.demo.spoken))?;
        let capabilities = params.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default();
        self.agreed
            .set(Agreed { revision, capabilities })
            .map_err(|_| Fault::new(INVALID_REQUEST, "the session is initialized already"))?;
        // A client that asked by the unpublished name of a revision must find that name in the answer.
        let version = if Revision::parse(requested) == Some(revision) { requested } else { revision.text() };
        Ok(json!({
            "protocolVersion": version,
            "capabilities": methods::capabilities(revision),
            "serverInfo": methods::server_info(),
            "instructions": methods::INSTRUCTIONS,
        }))
    }

    /// The revision that was agreed on, once there was a handshake.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.agreed.get().map(|agreed| agreed.revision)
    }

    pub(crate) fn capabilities(&self) -> Option<&Members> {
        self.agreed.get().map(|agreed| &agreed.capabilities)
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        *self.log_level.lock()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = level;
    }

    pub(crate) fn watch(&self, uri: &str) -> Result<(), Fault> {
        let mut watched = self.watched.lock();
        if watched.len() >= limits::WATCHED_RESOURCES && !watched.contains(uri) {
            return Err(Fault::invalid_params("too many subscriptions"));
        }
        watched.insert(uri.to_owned());
        Ok(())
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        self.watched.lock().remove(uri);
    }

    /// Answers a request, unless the client calls it off. What it says meanwhile goes to `outbox`.
    pub(crate) async fn answer(self: &Arc<Self>, request: &Request, outbox: Outbox) -> Option<Value> {
        let entry = match self.running.enter(&request.id, &self.ended) {
            Ok(entry) => entry,
            Err(fault) => return Some(fault.answer(Some(&request.id))),
        };
        let outcome = async {
            match request.method.as_str() {
                "initialize" => self.initialize(&request.params),
                "ping" => Ok(json!({})),
                _ => {
                    let revision = self.revision().ok_or_else(|| Fault::new(INVALID_REQUEST, "not initialized"))?;
                    let call = Call::in_session(&self.demo, self, revision, request, outbox);
                    methods::answer(&call, request).await
                }
            }
        };
        tokio::select! {
            () = entry.cancelled.cancelled() => None,
            outcome = outcome => Some(message::answer(&request.id, outcome)),
        }
    }

    /// Takes a message that wants no answer.
    pub(crate) fn note(&self, method: &str, params: &Members) {
        if let ("notifications/cancelled", Some(id)) = (method, params.get("requestId")) {
            self.running.cancel(id);
        }
    }

    /// Takes the answer to a question of ours. One that nobody waits for any more is ignored.
    pub(crate) fn answered(&self, id: &Value, outcome: Result<Value, Fault>) {
        let waiting = id.as_str().and_then(|id| self.questions.lock().remove(id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(outcome);
        }
    }

    /// Asks the client, by way of `outbox`, and waits for its answer.
    pub(crate) async fn ask(&self, method: &str, params: &Value, outbox: &Outbox) -> Result<Value, Fault> {
        let id = format!("demo-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.questions.lock().insert(id.clone(), sender);
        let question = Question { session: self, id };
        outbox.send(json!({"jsonrpc": "2.0", "id": question.id, "method": method, "params": params})).await;
        match tokio::time::timeout(limits::QUESTION_PATIENCE, receiver).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(Fault::new(INTERNAL_ERROR, format!("the client did not answer {method}"))),
        }
    }

    /// Where messages go that belong to no request.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// A new stream that the client can resume.
    pub(crate) fn open_stream(&self) -> Result<Arc<EventStream>, Fault> {
        let mut streams = self.streams.lock();
        let age = |stream: &EventStream| stream.finished().map(|finished| finished.elapsed());
        streams.retain(|_, stream| age(stream).is_none_or(|age| age < FINISHED_STREAM_AGE));
        let is_full = |streams: &BTreeMap<u64, Arc<EventStream>>| {
            let bytes: usize = streams.values().map(|stream| stream.bytes()).sum();
            streams.len() >= limits::STREAMS_PER_SESSION || bytes > limits::EVENT_BYTES_PER_SESSION
        };
        while is_full(&streams) {
            let oldest = streams.iter().filter_map(|(name, stream)| Some((age(stream)?, *name))).max();
            let Some((_, name)) = oldest else { break };
            streams.remove(&name);
        }
        if streams.len() >= limits::STREAMS_PER_SESSION {
            return Err(Fault::new(INTERNAL_ERROR, "too many streams"));
        }
        let name = self.next.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(EventStream::new(name, self.ended.clone()));
        streams.insert(name, Arc::clone(&stream));
        Ok(stream)
    }

    pub(crate) fn stream(&self, name: u64) -> Option<Arc<EventStream>> {
        self.streams.lock().get(&name).cloned()
    }

    pub(crate) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    pub(crate) fn idle(&self) -> Duration {
        self.used.lock().elapsed()
    }

    async fn announce_changes(self: Arc<Self>, mut changes: Listener) {
        loop {
            let change = tokio::select! {
                change = changes.next() => change,
                () = self.ended.cancelled() => None,
            };
            match change {
                None => return,
                Some(Change::Resource(uri)) if !self.watched.lock().contains(&uri) => {}
                Some(_) if self.agreed.get().is_none() => {}
                Some(change) => self.outbox.offer(change.notification(None)),
            }
        }
    }
}

/// A question while it waits for its answer.
struct Question<'a> {
    session: &'a Session,
    id: String,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.session.questions.lock().remove(&self.id);
    }
}
