//! Events: what controllers tell people who run `kubectl describe`.
//!
//! Publishing never holds up a controller: events go through a bounded channel and are dropped when it is full.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::mpsc;

use super::error::ControllerError;

const WAITING: usize = 1_000;
/// How many different events are remembered to be counted up instead of repeated.
const REMEMBERED: usize = 2_000;
/// The API server refuses longer messages.
const LONGEST_MESSAGE: usize = 1_024;

/// How serious an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    Normal,
    Warning,
}

/// Something worth telling about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The controller, as it appears in the `From` column.
    pub source: &'static str,
    pub severity: Severity,
    /// One word in CamelCase.
    pub reason: &'static str,
    pub message: String,
    /// Set by the scheduler only, which reports in the newer style: an action, a microsecond, no counting.
    pub action: Option<&'static str>,
}

impl Note {
    /// Something that went as it should.
    pub fn normal(source: &'static str, reason: &'static str, message: String) -> Self {
        Self { source, severity: Severity::Normal, reason, message, action: None }
    }

    /// Something that somebody should look at.
    pub fn warning(source: &'static str, reason: &'static str, message: String) -> Self {
        Self { source, severity: Severity::Warning, reason, message, action: None }
    }
}

/// Publishes events in the background.
#[derive(Clone, Debug)]
pub struct Recorder {
    sender: mpsc::Sender<(ObjectReference, Note)>,
}

impl Recorder {
    /// The recorder and the task that publishes for it.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self { sender }, publish(client, receiver))
    }

    /// Publishes an event about an object, soon.
    pub fn record<K: Resource<DynamicType = ()>>(&self, object: &K, note: Note) {
        let mut reference = object.object_ref(&());
        reference.resource_version.clone_from(&object.meta().resource_version);
        if self.sender.try_send((reference, note)).is_err() {
            tracing::debug!("event dropped: too many are waiting");
        }
    }
}

type Told = HashMap<(Option<String>, Note), (String, i32)>;

async fn publish(client: Client, mut waiting: mpsc::Receiver<(ObjectReference, Note)>) {
    let mut told = Told::new();
    while let Some((object, note)) = waiting.recv().await {
        if let Err(error) = tell(&client, &mut told, object, note).await {
            tracing::debug!(%error, "event not published");
        }
    }
}

async fn tell(client: &Client, told: &mut Told, object: ObjectReference, note: Note) -> Result<(), ControllerError> {
    let now = Timestamp::now();
    // Events about cluster-wide objects live in the default namespace.
    let namespace = object.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let api = Api::<Event>::namespaced(client.clone(), &namespace);
    let same = (object.uid.clone(), note.clone());
    if let Some((name, count)) = told.get_mut(&same) {
        *count = count.saturating_add(1);
        let patch = json!({"count": *count, "lastTimestamp": Time(now)});
        match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(ControllerError::from) {
            Ok(_) => return Ok(()),
            // It has expired: tell it anew.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    if told.len() >= REMEMBERED {
        told.clear();
    }
    let event = event_of(&namespace, object, &note, now);
    let name = event.metadata.name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &event).await?;
    if note.action.is_none() {
        told.insert(same, (name, 1));
    }
    Ok(())
}

fn event_of(namespace: &str, object: ObjectReference, note: &Note, now: Timestamp) -> Event {
    let name = format!("{}.{:x}", object.name.as_deref().unwrap_or_default(), now.as_nanosecond());
    let counted = note.action.is_none();
    let mut message = note.message.clone();
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    }
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() },
        involved_object: object,
        type_: Some(if note.severity == Severity::Warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.to_owned()),
        message: Some(message),
        action: note.action.map(str::to_owned),
        count: counted.then_some(1),
        first_timestamp: counted.then_some(Time(now)),
        last_timestamp: counted.then_some(Time(now)),
        event_time: (!counted).then_some(MicroTime(now)),
        source: counted.then(|| EventSource { component: Some(note.source.to_owned()), host: None }),
        reporting_component: Some(note.source.to_owned()),
        reporting_instance: (!counted).then(|| note.source.to_owned()),
        ..Event::default()
    }
}
