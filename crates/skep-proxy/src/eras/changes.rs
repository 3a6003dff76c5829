//! Changes that a server tells those who listen by a request, for a client that was promised them by a handshake.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use skep_mcp::fault::{Fault, INTERNAL_ERROR, INVALID_PARAMS};
use skep_mcp::translate::{self, Envelope};
use skep_mcp::{Kind, Message, Param, method};

use super::line::{self, Line, Replies};
use super::modern_client::Running;
use super::own_name;
use crate::stdio::events::EventStream;

/// Resources that one client may watch.
const RESOURCES: usize = 256;
/// How long a server may take to say what it will tell.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before a stream that broke is opened again; twice as long after each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What one client listens to.
#[derive(Debug, Default)]
pub(super) struct Changes(tokio::sync::Mutex<State>);

#[derive(Debug, Default)]
struct State {
    resources: BTreeSet<String>,
    listener: Option<Running>,
}

/// A stream of changes, and what the server will tell on it.
struct Listening {
    replies: Replies,
    honoured: Value,
}

impl Changes {
    /// Begins to listen, if that has not begun. A server that tells nothing is one that never changes.
    pub(super) async fn begin(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>) {
        let mut state = self.0.lock().await;
        if state.listener.is_none()
            && let Ok(listening) = open(&*line, &state.resources).await
        {
            let resources = state.resources.clone();
            state.listener = Some(follow(line, listening, Arc::clone(stream), resources));
        }
    }

    /// Watches a resource as well.
    pub(super) async fn add(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>, uri: &str) -> Result<(), Fault> {
        // Held while the server is asked, so that the last change wins.
        let mut state = self.0.lock().await;
        let mut resources = state.resources.clone();
        resources.insert(uri.to_owned());
        if resources.len() > RESOURCES {
            return Err(Fault::new(INVALID_PARAMS, format!("a session watches at most {RESOURCES} resources")));
        }
        let listening = open(&*line, &resources).await?;
        let watched = listening.honoured["resourceSubscriptions"].as_array();
        if !watched.into_iter().flatten().any(|watched| watched == uri) {
            return Err(Fault::new(INVALID_PARAMS, format!("{uri} cannot be watched")));
        }
        state.resources.clone_from(&resources);
        // The one before ends when this one is there, so that nothing is missed.
        state.listener = Some(follow(line, listening, Arc::clone(stream), resources));
        Ok(())
    }

    /// No longer watches a resource.
    pub(super) async fn remove(&self, line: Arc<dyn Line>, stream: &Arc<EventStream>, uri: &str) -> Result<(), Fault> {
        let mut state = self.0.lock().await;
        if state.resources.remove(uri) {
            let resources = state.resources.clone();
            let listening = open(&*line, &resources).await?;
            state.listener = Some(follow(line, listening, Arc::clone(stream), resources));
        }
        Ok(())
    }
}

/// Opens a stream of changes, and waits until the server says what it will tell.
async fn open(line: &dyn Line, resources: &BTreeSet<String>) -> Result<Listening, Fault> {
    let mut wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    if !resources.is_empty() {
        wanted["resourceSubscriptions"] = json!(resources);
    }
    let request = line::request(method::LISTEN, &json!({"notifications": wanted}));
    let name = own_name();
    let envelope = Envelope { capabilities: "{}", client: &name, ..Default::default() };
    let unusable = |told: &dyn std::fmt::Display| Fault::new(INTERNAL_ERROR, told.to_string());
    let request = translate::newer_request(&request, &envelope).map_err(|error| unusable(&error))?;
    let request = Message::read(request.into()).map_err(|error| unusable(&error))?;
    let acknowledged = async {
        let mut replies = line.ask(&request).await.map_err(|lost| lost.fault())?;
        while let Some(message) = replies.next().await {
            if message.method() == method::ACKNOWLEDGED {
                let told: Value = serde_json::from_str(message.as_str()).unwrap_or_default();
                return Ok(Listening { replies, honoured: told["params"]["notifications"].clone() });
            }
            if let Some(error) = message.error() {
                let told: Value = serde_json::from_str(error).unwrap_or_default();
                let words = told["message"].as_str().unwrap_or("the MCP server tells no changes").to_owned();
                return Err(Fault::new(translate::error_code(error), words));
            }
        }
        Err(unusable(&"the MCP server tells no changes"))
    };
    tokio::time::timeout(PATIENCE, acknowledged)
        .await
        .unwrap_or_else(|_| Err(unusable(&"the MCP server does not answer")))
}

/// Hands changes on for as long as somebody keeps it.
fn follow(line: Arc<dyn Line>, first: Listening, stream: Arc<EventStream>, resources: BTreeSet<String>) -> Running {
    Running(tokio::spawn(async move {
        let mut listening = first;
        loop {
            relay(&mut listening, &stream).await;
            let mut pause = FIRST_PAUSE;
            listening = loop {
                tokio::time::sleep(pause).await;
                match open(&*line, &resources).await {
                    Ok(listening) => break listening,
                    Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
                }
            };
            // What changed meanwhile is not known, so that everything may have.
            for message in everything(&listening.honoured) {
                stream.offer(message);
            }
        }
    }))
}

async fn relay(listening: &mut Listening, stream: &Arc<EventStream>) {
    while let Some(message) = listening.replies.next().await {
        let is_change =
            message.method() == method::RESOURCE_UPDATED || method::LISTS_CHANGED.contains(&message.method());
        if message.kind() == Kind::Notification && is_change {
            stream.offer(translate::older_notification(&message).into());
        }
    }
}

/// One notification of each kind that the server tells.
fn everything(honoured: &Value) -> Vec<bytes::Bytes> {
    let kinds = ["toolsListChanged", "resourcesListChanged", "promptsListChanged"];
    let lists = kinds.iter().zip(method::LISTS_CHANGED).filter(|(kind, _)| honoured[**kind] == true);
    let lists = lists.map(|(_, told)| line::notification(told, &json!({})));
    let resources = honoured["resourceSubscriptions"].as_array().into_iter().flatten();
    let resources = resources.map(|uri| line::notification(method::RESOURCE_UPDATED, &json!({Param::Uri.name(): uri})));
    lists.chain(resources).collect()
}
