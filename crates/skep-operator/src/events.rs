//! Events: what the operator tells people who run `kubectl describe`, once per change and not once per pass.
//!
//! Publishing never holds up a controller: events wait in a bounded channel and are dropped when it is full.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder as Publisher, Reporter};
use kube::{Client, Resource};
use tokio::sync::mpsc;

const WAITING: usize = 1_000;
/// The API server refuses longer notes.
const LONGEST_NOTE: usize = 1_024;

/// Something worth telling about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub severity: Severity,
    /// Why, in one word.
    pub reason: String,
    /// What the operator was doing, in one word.
    pub action: &'static str,
    /// What happened, in words.
    pub note: String,
}

/// How serious an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Normal,
    Warning,
}

impl Note {
    /// Something that went as it should.
    pub fn normal(reason: impl Into<String>, action: &'static str, note: String) -> Self {
        Self { severity: Severity::Normal, reason: reason.into(), action, note }
    }

    /// Something that somebody should look at.
    pub fn warning(reason: impl Into<String>, action: &'static str, note: String) -> Self {
        Self { severity: Severity::Warning, reason: reason.into(), action, note }
    }
}

/// Publishes events in the background, in the name of one controller.
#[derive(Clone, Debug)]
pub struct Recorder {
    sender: mpsc::Sender<(ObjectReference, Note)>,
}

impl Recorder {
    /// The recorder of a controller, and the task that publishes for it.
    pub fn new(client: Client, controller: &str) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let publisher = Publisher::new(client, Reporter::from(controller.to_owned()));
        (Self { sender }, publish(publisher, receiver))
    }

    /// Publishes an event about an object, soon.
    pub fn record<K: Resource<DynamicType = ()>>(&self, object: &K, note: Note) {
        if self.sender.try_send((object.object_ref(&()), note)).is_err() {
            tracing::debug!("event dropped: too many are waiting");
        }
    }
}

async fn publish(publisher: Publisher, mut waiting: mpsc::Receiver<(ObjectReference, Note)>) {
    while let Some((object, note)) = waiting.recv().await {
        let event = Event {
            type_: match note.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: note.reason,
            note: Some(cut(note.note)),
            action: note.action.to_owned(),
            secondary: None,
        };
        if let Err(error) = publisher.publish(&event, &object).await {
            tracing::warn!(%error, kind = object.kind, name = object.name, "event not published");
        }
    }
}

fn cut(mut note: String) -> String {
    if let Some((limit, _)) = note.char_indices().find(|(at, letter)| at + letter.len_utf8() > LONGEST_NOTE) {
        note.truncate(limit);
    }
    note
}
