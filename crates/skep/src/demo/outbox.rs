//! Where the messages of the server go.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use super::events::EventStream;

/// The way to a client.
#[derive(Debug, Clone)]
pub(crate) enum Outbox {
    /// A connection that is read from beginning to end.
    Queue(mpsc::Sender<Value>),
    /// A stream that the client may leave and come back to.
    Stream(Arc<EventStream>),
}

impl Outbox {
    /// Sends a message, waiting for a client that reads slowly. When the client is gone the message is lost, as it
    /// would be on its way.
    pub(crate) async fn send(&self, message: Value) {
        match self {
            Self::Queue(queue) => {
                let _ = queue.send(message).await;
            }
            Self::Stream(stream) => stream.send(&message).await,
        }
    }

    /// Sends a message that the client can do without when it does not keep up.
    pub(crate) fn offer(&self, message: Value) {
        match self {
            Self::Queue(queue) => {
                let _ = queue.try_send(message);
            }
            Self::Stream(stream) => stream.offer(&message),
        }
    }
}
