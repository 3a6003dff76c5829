//! Changes that a server tells those who listen by a request, for a client that was promised them by a handshake.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::fault::{Fault, INTERNAL_ERROR, INVALID_PARAMS};
use skep_mcp::translate::{self, Envelope};
use skep_mcp::{Kind, Message, Param, method};
use tokio::sync::oneshot;

use super::line::{self, Line, Lost, Replies};
use super::modern_client::Running;
use super::own_name;
use crate::pauses::Pauses;
use crate::stdio::events::EventStream;

/// Resources that one client may watch.
const RESOURCES: usize = 256;
/// How long a server may take to say what it will tell.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client waits for that before its own stream begins.
const PROMPT: Duration = Duration::from_secs(2);
/// How long two streams may tell the same, and how many messages are remembered for that.
const OVERLAP: Duration = Duration::from_secs(1);
const RECENT: usize = 256;

/// What one client listens to.
#[derive(Debug, Default)]
pub(super) struct Changes {
    state: Mutex<State>,
    /// Held while the server is asked for something else than before, so that the last change wins.
    turn: tokio::sync::Mutex<()>,
    told: Arc<Told>,
}

#[derive(Debug, Default)]
struct State {
    resources: BTreeSet<String>,
    listener: Option<Running>,
}

/// What was told just now. While one stream takes the place of another, both may tell the same.
#[derive(Debug, Default)]
struct Told(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    replaced: Option<Instant>,
    messages: VecDeque<(Instant, Bytes)>,
}

impl Told {
    /// One stream takes the place of another now.
    fn replace(&self, now: Instant) {
        self.0.lock().replaced = Some(now);
    }

    /// Whether a message is to be told, which it then counts as.
    fn is_news(&self, message: &Bytes, now: Instant) -> bool {
        let mut recent = self.0.lock();
        let is_recent = |since: Instant| now.duration_since(since) < OVERLAP;
        while recent.messages.len() >= RECENT || recent.messages.front().is_some_and(|(since, _)| !is_recent(*since)) {
            recent.messages.pop_front();
        }
        let is_known = recent.messages.iter().any(|(_, known)| known == message);
        recent.messages.push_back((now, message.clone()));
        !is_known || !recent.replaced.is_some_and(is_recent)
    }
}

/// Why there is no stream of changes.
struct Unheard {
    fault: Fault,
    /// Whether there is none later, either, unless the client shows something else.
    is_final: bool,
}

impl Unheard {
    fn new(told: &dyn std::fmt::Display) -> Self {
        Self { fault: Fault::new(INTERNAL_ERROR, told.to_string()), is_final: false }
    }
}

impl From<Lost> for Unheard {
    fn from(lost: Lost) -> Self {
        Self { fault: lost.fault(), is_final: lost.is_final() }
    }
}

/// A stream of changes, and what the server will tell on it.
struct Listening {
    replies: Replies,
    honoured: Value,
}

impl Changes {
    /// Begins to listen, if that has not begun, or came to an end. It goes on when the server cannot be listened to now.
    pub(super) async fn begin(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>) {
        let opened = {
            let mut state = self.state.lock();
            if state.listener.as_ref().is_some_and(|listener| !listener.0.is_finished()) {
                return;
            }
            let is_again = state.listener.is_some();
            let (opened, first) = oneshot::channel();
            let follower = self.follower(line, stream, state.resources.clone());
            state.listener = Some(Running(tokio::spawn(follower.begin(opened, is_again))));
            first
        };
        // Whoever is told of the first change need not be told that anything may have changed. That is not worth much waiting.
        let _ = tokio::time::timeout(PROMPT, opened).await;
    }

    /// Watches a resource as well.
    pub(super) async fn add(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>, uri: &str) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        let mut resources = self.state.lock().resources.clone();
        resources.insert(uri.to_owned());
        if resources.len() > RESOURCES {
            return Err(Fault::new(INVALID_PARAMS, format!("a session watches at most {RESOURCES} resources")));
        }
        let listening = open(&*line, &resources).await.map_err(|unheard| unheard.fault)?;
        let watched = listening.honoured["resourceSubscriptions"].as_array();
        if !watched.into_iter().flatten().any(|watched| watched == uri) {
            return Err(Fault::new(INVALID_PARAMS, format!("{uri} cannot be watched")));
        }
        self.follow(self.follower(line, stream, resources), listening);
        Ok(())
    }

    /// No longer watches a resource.
    pub(super) async fn remove(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>, uri: &str) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        let resources = {
            let mut state = self.state.lock();
            if !state.resources.remove(uri) {
                return Ok(());
            }
            state.resources.clone()
        };
        let listening = open(&*line, &resources).await.map_err(|unheard| unheard.fault)?;
        self.follow(self.follower(line, stream, resources), listening);
        Ok(())
    }

    /// Hands on what a stream tells. The one before ends when this one is there, so that nothing is missed.
    fn follow(&self, follower: Follower, listening: Listening) {
        self.told.replace(Instant::now());
        let mut state = self.state.lock();
        state.resources.clone_from(&follower.resources);
        state.listener = Some(Running(tokio::spawn(follower.follow(listening))));
    }

    fn follower(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>, resources: BTreeSet<String>) -> Follower {
        Follower { line, stream: Arc::clone(stream), told: Arc::clone(&self.told), resources }
    }
}

/// Opens a stream of changes, and waits until the server says what it will tell.
async fn open(line: &dyn Line, resources: &BTreeSet<String>) -> Result<Listening, Unheard> {
    let mut wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    if !resources.is_empty() {
        wanted["resourceSubscriptions"] = json!(resources);
    }
    let request = line::request(method::LISTEN, &json!({"notifications": wanted}));
    let name = own_name();
    let envelope = Envelope { capabilities: "{}", client: &name, ..Default::default() };
    let request = translate::newer_request(&request, &envelope).map_err(|error| Unheard::new(&error))?;
    let request = Message::read(request.into()).map_err(|error| Unheard::new(&error))?;
    let acknowledged = async {
        let mut replies = line.ask(&request).await?;
        while let Some(message) = replies.next().await {
            if message.method() == method::ACKNOWLEDGED {
                let told: Value = serde_json::from_str(message.as_str()).unwrap_or_default();
                return Ok(Listening { replies, honoured: told["params"]["notifications"].clone() });
            }
            if let Some(error) = message.error() {
                let told: Value = serde_json::from_str(error).unwrap_or_default();
                let words = told["message"].as_str().unwrap_or("the MCP server tells no changes").to_owned();
                let code = translate::error_code(error);
                // A server that is in trouble may be so no longer.
                return Err(Unheard { fault: Fault::new(code, words), is_final: code != INTERNAL_ERROR });
            }
        }
        Err(Unheard::new(&"the MCP server tells no changes"))
    };
    tokio::time::timeout(PATIENCE, acknowledged)
        .await
        .unwrap_or_else(|_| Err(Unheard::new(&"the MCP server does not answer")))
}

/// Hands changes on for as long as somebody keeps it, and the server tells them to this client. What the client proves
/// itself with may have ended meanwhile: then its stream ends, so that it comes back with something else.
struct Follower {
    line: Arc<dyn Line>,
    stream: Arc<EventStream>,
    told: Arc<Told>,
    resources: BTreeSet<String>,
}

impl Follower {
    /// Opens the first stream, and says when that is there if anybody waits for it. A server that refuses that tells
    /// nothing, and is one that never changes.
    async fn begin(self, opened: oneshot::Sender<()>, is_again: bool) {
        let listening = match open(&*self.line, &self.resources).await {
            Ok(listening) => {
                if opened.send(()).is_err() || is_again {
                    self.tell_everything(&listening);
                }
                listening
            }
            Err(refused) if refused.is_final => return,
            Err(_) => {
                // Nobody has to wait for the next attempt.
                drop(opened);
                let Some(listening) = self.open_again().await else { return };
                listening
            }
        };
        self.follow(listening).await;
    }

    async fn follow(self, mut listening: Listening) {
        loop {
            relay(&mut listening, &self.stream, &self.told).await;
            match self.open_again().await {
                Some(again) => listening = again,
                None => return,
            }
        }
    }

    /// Another stream, unless the server refuses that.
    async fn open_again(&self) -> Option<Listening> {
        let mut pauses = Pauses::of_streams();
        loop {
            pauses.pause().await;
            match open(&*self.line, &self.resources).await {
                Ok(listening) => {
                    self.tell_everything(&listening);
                    return Some(listening);
                }
                Err(refused) if refused.is_final => {
                    let reason = &*refused.fault.message;
                    tracing::info!(reason, "no stream of changes is opened again; that of the client ends");
                    self.stream.send_away();
                    return None;
                }
                Err(_) => {}
            }
        }
    }

    /// What changed while nobody listened is not known, so that everything may have.
    fn tell_everything(&self, listening: &Listening) {
        for message in everything(&listening.honoured) {
            self.stream.offer(message);
        }
    }
}

async fn relay(listening: &mut Listening, stream: &Arc<EventStream>, told: &Told) {
    while let Some(message) = listening.replies.next().await {
        let is_change =
            message.method() == method::RESOURCE_UPDATED || method::LISTS_CHANGED.contains(&message.method());
        if message.kind() == Kind::Notification && is_change {
            let message = Bytes::from(translate::older_notification(&message));
            if told.is_news(&message, Instant::now()) {
                stream.offer(message);
            }
        }
    }
}

/// One notification of each kind that the server tells.
pub(super) fn everything(honoured: &Value) -> Vec<Bytes> {
    let kinds = ["toolsListChanged", "resourcesListChanged", "promptsListChanged"];
    let lists = kinds.iter().zip(method::LISTS_CHANGED).filter(|(kind, _)| honoured[**kind] == true);
    let lists = lists.map(|(_, told)| line::notification(told, &json!({})));
    let resources = honoured["resourceSubscriptions"].as_array().into_iter().flatten();
    let resources = resources.map(|uri| line::notification(method::RESOURCE_UPDATED, &json!({Param::Uri.name(): uri})));
    lists.chain(resources).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_streams_tell_while_one_replaces_the_other_is_told_once() {
        let (told, begun) = (Told::default(), Instant::now());
        let [a, b] = ["a", "b"].map(Bytes::from);
        assert!(told.is_news(&a, begun) && told.is_news(&a, begun), "one stream says what it says");
        told.replace(begun);
        assert!(!told.is_news(&a, begun) && told.is_news(&b, begun));
        assert!(told.is_news(&a, begun + OVERLAP), "that is another change");
        for _ in 0..2 * RECENT {
            told.is_news(&b, begun);
        }
        assert!(told.0.lock().messages.len() <= RECENT);
    }
}
