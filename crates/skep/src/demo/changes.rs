//! What clients can be told to have changed.

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::message;

/// A change of what the server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    /// The content of the resource with this URI.
    Resource(String),
}

impl Change {
    pub(crate) fn notification(&self, meta: Option<Value>) -> Value {
        let mut params = json!({});
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        let method = match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(uri) => {
                params["uri"] = json!(uri);
                "notifications/resources/updated"
            }
        };
        message::notification(method, &params)
    }
}

/// Tells every listener of every change.
#[derive(Debug)]
pub(crate) struct Changes(broadcast::Sender<Change>);

/// Learns of the changes from now on.
#[derive(Debug)]
pub(crate) struct Listener(broadcast::Receiver<Change>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(64))
    }
}

impl Changes {
    pub(crate) fn publish(&self, change: Change) {
        // Nobody listening is fine.
        let _ = self.0.send(change);
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

impl Listener {
    /// The next change that is known. A listener that is far behind misses the oldest.
    pub(crate) async fn next(&mut self) -> Option<Change> {
        loop {
            match self.0.recv().await {
                Ok(change) => return Some(change),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
