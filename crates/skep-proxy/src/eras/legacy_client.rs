//! Clients of sessions, before a server whose requests stand alone.
//!
//! The session is ours: the server knows nothing of it. What a handshake settles once is said with every request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, INVALID_PARAMS, METHOD_NOT_FOUND};
use skep_mcp::{Id, Kind, Message, Param, ReadError, Revision, header, json, method};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::changes::Changes;
use super::line::{self, Line};
use super::rounds;
use crate::answer::{self, Answer};
use crate::intake::Accepts;
use crate::reply::{Reply, whole};
use crate::sessions::Session;
use crate::stdio::clients::Client;
use crate::stdio::events::{End, EventStream};
use crate::stdio::load::TooMuch;
use crate::stdio::log_level;

/// What marks a session that is ours because the server has none: the revision that the server speaks.
const BRIDGED: &str = "bridged";
/// What the client of such a session can be asked.
const CAPABILITIES: &str = "client_capabilities";

/// A session.
#[derive(Debug)]
pub(crate) struct LegacyClient {
    pub(super) streams: Arc<Client>,
    /// The revision that was agreed on.
    pub(super) revision: Revision,
    /// What the client can be asked: an object.
    pub(super) capabilities: Box<str>,
    questions: Mutex<HashMap<String, oneshot::Sender<Message>>>,
    running: Mutex<Vec<(Id, CancellationToken)>>,
    log_level: Mutex<Option<String>>,
    changes: Changes,
    next: AtomicU64,
    ended: CancellationToken,
}

/// What of a client's capabilities a server may use through us: an object.
pub(crate) fn capabilities(handshake: &Message, revision: Revision) -> String {
    let text = handshake.as_str();
    let declared = json::find(text, &["params", "capabilities"]).ok().flatten().map_or("{}", |place| place.of(text));
    let mut declared: Map<String, Value> = serde_json::from_str(declared).unwrap_or_default();
    declared.retain(|name, _| match name.as_str() {
        "roots" | "sampling" => true,
        "elicitation" => revision >= Revision::June2025,
        _ => false,
    });
    // Before that revision there are no pages to send a person to.
    if let Some(Value::Object(modes)) = declared.get_mut("elicitation")
        && revision < Revision::November2025
    {
        modes.clear();
    }
    Value::Object(declared).to_string()
}

/// Writes down that a session is ours, and what its client can be asked, so that every proxy that finds it can serve it.
pub(crate) fn mark(session: &mut Session, capabilities: &str) {
    session.metadata.insert(BRIDGED.to_owned(), Revision::July2026.text().to_owned());
    session.metadata.insert(CAPABILITIES.to_owned(), capabilities.to_owned());
}

/// Whether a session is ours.
pub(crate) fn is_marked(session: &Session) -> bool {
    session.metadata.contains_key(BRIDGED)
}

impl LegacyClient {
    /// A session that was written down.
    pub(crate) fn of(session: &Session, streams: Arc<Client>) -> Arc<Self> {
        let capabilities = session.metadata.get(CAPABILITIES).map_or("{}", String::as_str);
        Self::new(streams, session.revision(), capabilities)
    }

    /// A session whose messages go to these streams.
    pub(crate) fn new(streams: Arc<Client>, revision: Revision, capabilities: &str) -> Arc<Self> {
        Arc::new(Self {
            streams,
            revision,
            capabilities: capabilities.into(),
            questions: Mutex::default(),
            running: Mutex::default(),
            log_level: Mutex::default(),
            changes: Changes::default(),
            next: AtomicU64::new(1),
            ended: CancellationToken::new(),
        })
    }

    /// What the client knows the session by.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.streams.id
    }

    /// Ends all that is under way.
    pub(crate) fn close(&self) {
        self.ended.cancel();
    }

    pub(super) fn log_level(&self) -> Option<String> {
        self.log_level.lock().clone()
    }

    /// Takes a message.
    pub(crate) async fn take(self: &Arc<Self>, line: Arc<dyn Line>, accepts: Accepts, message: Message) -> Answer {
        if message.kind() != Kind::Request {
            self.note(message);
            return answer::empty(StatusCode::ACCEPTED);
        }
        if let Some(text) = self.answer_locally(&line, &message).await {
            return whole(accepts, text);
        }
        let reply = Reply { accepts, era: Era::Legacy, client: Some(Arc::clone(&self.streams)) };
        let stream = reply.stream();
        if self.begin(line, &message, &stream, accepts.events).is_err() {
            return TooMuch::answer(&message);
        }
        reply.give(&stream, (), drop).await
    }

    /// Takes a request whose client has one stream for everything.
    pub(crate) async fn answer_on(self: &Arc<Self>, line: Arc<dyn Line>, request: Message, to: &Arc<EventStream>) {
        if let Some(text) = self.answer_locally(&line, &request).await {
            return to.answer(text, request.owned_id().as_ref());
        }
        let stream = EventStream::new(0, false);
        let mut messages = stream.messages(());
        if self.begin(line, &request, &stream, true).is_err() {
            let refused = TooMuch::fault().answer(request.owned_id().as_ref());
            return to.answer(refused.into(), request.owned_id().as_ref());
        }
        while let Some(message) = messages.next().await {
            match message.kind() {
                Kind::Response => to.answer(message.text().clone(), message.owned_id().as_ref()),
                Kind::Request | Kind::Notification => to.offer(message.text().clone()),
            }
        }
    }

    /// Begins to tell a client of changes that has one stream for everything.
    pub(crate) async fn tell_changes(&self, line: Arc<dyn Line>) {
        self.changes.begin(line, self.streams.background()).await;
    }

    /// Takes several messages at once. Nobody can be asked on their way, because their answers come together.
    pub(crate) async fn take_batch(
        self: &Arc<Self>,
        line: &Arc<dyn Line>,
        messages: Vec<Result<Message, ReadError>>,
    ) -> Answer {
        let answers = join_all(messages.into_iter().map(|message| self.take_member(line, message))).await;
        // What was called off has none.
        let answers: Vec<Bytes> = answers.into_iter().flatten().filter(|answer| !answer.is_empty()).collect();
        if answers.is_empty() {
            return answer::empty(StatusCode::ACCEPTED);
        }
        answer::batch(answers)
    }

    async fn take_member(self: &Arc<Self>, line: &Arc<dyn Line>, message: Result<Message, ReadError>) -> Option<Bytes> {
        let message = match message {
            Ok(message) => message,
            Err(error) => return Some(error.answer().into()),
        };
        if message.kind() != Kind::Request {
            self.note(message);
            return None;
        }
        if let Some(text) = self.answer_locally(line, &message).await {
            return Some(text);
        }
        let stream = EventStream::new(0, false);
        match self.begin(Arc::clone(line), &message, &stream, false) {
            Ok(()) => Some(stream.outcome().await.1),
            Err(TooMuch) => Some(TooMuch::fault().answer(message.owned_id().as_ref()).into()),
        }
    }

    /// The stream for what belongs to no request, or what a client missed of one.
    pub(crate) async fn listen(self: &Arc<Self>, line: Arc<dyn Line>, headers: &HeaderMap) -> Answer {
        let last = headers.get(header::LAST_EVENT_ID);
        if last.is_none() {
            self.changes.begin(line, self.streams.background()).await;
        }
        self.streams.listen(last)
    }

    /// Sends a request on its way. It goes on without the client, which may come back for the answer.
    fn begin(
        self: &Arc<Self>,
        line: Arc<dyn Line>,
        request: &Message,
        stream: &Arc<EventStream>,
        can_ask: bool,
    ) -> Result<(), TooMuch> {
        let share = self.streams.load().take(request.text().len())?;
        let cancelled = self.ended.child_token();
        let (client, stream, request) = (Arc::clone(self), Arc::clone(stream), request.clone());
        if let Some(id) = request.owned_id() {
            self.running.lock().push((id, cancelled.clone()));
        }
        tokio::spawn(async move {
            tokio::select! {
                () = rounds::run(&client, &*line, &request, &stream, can_ask) => {}
                () = cancelled.cancelled() => stream.end(None, End::Closed),
            }
            // No other one has the same token, while ids are as the client chooses them.
            cancelled.cancel();
            client.running.lock().retain(|(_, token)| !token.is_cancelled());
            drop(share);
        });
        Ok(())
    }

    /// Takes a message that wants no answer.
    pub(crate) fn note(&self, message: Message) {
        if message.kind() == Kind::Response {
            let waiting = message.id().and_then(json::decode).and_then(|id| self.questions.lock().remove(&*id));
            if let Some(waiting) = waiting {
                // Whoever asked may have given up meanwhile.
                let _ = waiting.send(message);
            } else {
                // It is taken nevertheless: clients may answer late, and some end when they are told so.
                tracing::debug!("a client answers what nobody waits for here");
            }
        } else if let (method::CANCELLED, Some(id)) = (message.method(), message.param(Param::RequestId)) {
            let running = self.running.lock();
            if let Some((_, token)) = running.iter().find(|(known, _)| known.means(id)) {
                token.cancel();
            }
        }
        // Roots are asked for afresh each time, and the server knows of no handshake that could be over.
    }

    /// The answer to a request that the server has no words for.
    async fn answer_locally(&self, line: &Arc<dyn Line>, message: &Message) -> Option<Bytes> {
        let id = message.owned_id();
        let done = || line::result(message.id().unwrap_or("0"), "{}");
        let refused = |fault: &Fault| Bytes::from(fault.answer(id.as_ref()));
        let uri = || message.param_text(Param::Uri).ok_or_else(|| Fault::new(INVALID_PARAMS, "uri is missing"));
        let outcome = match message.method() {
            method::PING => Ok(()),
            method::SET_LOG_LEVEL => self.set_log_level(message),
            method::SUBSCRIBE => match uri() {
                Ok(uri) => self.changes.add(Arc::clone(line), self.streams.background(), &uri).await,
                Err(fault) => Err(fault),
            },
            method::UNSUBSCRIBE => match uri() {
                Ok(uri) => self.changes.remove(Arc::clone(line), self.streams.background(), &uri).await,
                Err(fault) => Err(fault),
            },
            name if matches!(name, method::DISCOVER | method::LISTEN) || name.starts_with("tasks/") => {
                Err(Fault::new(METHOD_NOT_FOUND, format!("Method not found: {name}")))
            }
            _ => return None,
        };
        Some(outcome.map_or_else(|fault| refused(&fault), |()| done()))
    }

    fn set_log_level(&self, message: &Message) -> Result<(), Fault> {
        let level = message.param_text(Param::Level).filter(|level| log_level::is_known(level));
        let level = level.ok_or_else(|| Fault::new(INVALID_PARAMS, "level is missing, or none of the protocol"))?;
        *self.log_level.lock() = Some(level.into_owned());
        Ok(())
    }

    /// A question that waits for the client's answer. It is told by `ask`, which is given the id.
    pub(super) fn question(&self) -> Asked<'_> {
        let id = format!("skep-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.questions.lock().insert(id.clone(), sender);
        Asked { client: self, id, answer }
    }
}

/// A question to the client while its answer is waited for.
pub(super) struct Asked<'a> {
    client: &'a LegacyClient,
    pub(super) id: String,
    pub(super) answer: oneshot::Receiver<Message>,
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Asked").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.client.questions.lock().remove(&self.id);
    }
}
