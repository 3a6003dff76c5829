//! Requests as bytes, so that the load costs the machine as little as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::task::JoinSet;

/// A request, ready to be sent.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
}

const JSON: &str = "application/json";

impl Call {
    fn new(method: Method, path: &str, content_type: &'static str, object: &Value) -> Self {
        Self { method, path: path.to_owned(), content_type, body: object.to_string().into_bytes() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), content_type: JSON, body: Vec::new() }
    }

    pub(crate) fn post(path: &str, object: &Value) -> Self {
        Self::new(Method::POST, path, JSON, object)
    }

    pub(crate) fn put(path: &str, object: &Value) -> Self {
        Self::new(Method::PUT, path, JSON, object)
    }

    pub(crate) fn merge(path: &str, changes: &Value) -> Self {
        Self::new(Method::PATCH, path, "application/merge-patch+json", changes)
    }

    /// Server-side apply; the path names the field manager.
    pub(crate) fn apply(path: &str, object: &Value) -> Self {
        Self::new(Method::PATCH, path, "application/apply-patch+yaml", object)
    }

    pub(crate) fn request(&self) -> Result<Request<Body>, http::Error> {
        Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header("content-type", self.content_type)
            .body(Body::from(self.body.clone()))
    }
}

/// The body of a good answer.
pub(crate) async fn send(client: &Client, call: &Call) -> anyhow::Result<Vec<u8>> {
    let response = client.send(call.request()?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(
        status.is_success(),
        "{} {} was answered with {status}: {}",
        call.method,
        call.path,
        String::from_utf8_lossy(&body)
    );
    Ok(body.into())
}

/// Sends all of them, each client with one request under way, and tells how long that took.
pub(crate) async fn send_all(clients: Vec<Client>, calls: Vec<Call>) -> anyhow::Result<Duration> {
    for client in &clients {
        // The handshake is not what is measured.
        send(client, &Call::get("/readyz")).await?;
    }
    let calls = Arc::new(calls);
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut senders = JoinSet::new();
    for client in clients {
        let (calls, next) = (calls.clone(), next.clone());
        senders.spawn(async move {
            while let Some(call) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                send(&client, call).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(sender) = senders.join_next().await {
        sender??;
    }
    Ok(begun.elapsed())
}
