//! Watches that run while a scenario goes on.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::scenario::Until;

/// How long a watch may take to see what is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// More events than any scenario makes.
const BUFFERED_EVENTS: usize = 1000;

/// A watch that is under way. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Watch {
    events: mpsc::Receiver<Value>,
    reader: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Watch {
    pub(super) fn read(answer: Response<Body>) -> Self {
        let (sender, events) = mpsc::channel(BUFFERED_EVENTS);
        let reader = tokio::spawn(async move {
            let mut body = answer.into_body();
            let mut buffer = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    let event = serde_json::from_slice(&line)
                        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
            }
        });
        Self { events, reader }
    }

    /// The events until enough were seen, or an error with what was seen until patience ran out.
    pub(super) async fn collect(&mut self, until: &Until) -> Result<Vec<Value>, Vec<Value>> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            if matches!(until, Until::Events(count) if seen.len() >= *count) {
                return Ok(seen);
            }
            let Ok(next) = timeout_at(deadline, self.events.recv()).await else {
                return Err(seen);
            };
            let Some(event) = next else {
                return if *until == Until::End { Ok(seen) } else { Err(seen) };
            };
            let is_last = matches!(until, Until::Type(kind) if event["type"] == kind.as_str());
            if is_last || !is_plain_bookmark(&event) {
                seen.push(event);
            }
            if is_last {
                return Ok(seen);
            }
        }
    }
}

/// Bookmarks come when the server thinks it is time, except the one that ends the initial events.
fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}
