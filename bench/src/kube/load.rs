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

use super::server::Server;

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    path: String,
    body: Vec<u8>,
}

impl Call {
    pub(super) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), body: Vec::new() }
    }

    pub(super) fn post(path: &str, object: &Value) -> Self {
        Self { method: Method::POST, path: path.to_owned(), body: object.to_string().into_bytes() }
    }

    pub(super) fn put(path: &str, object: &Value) -> Self {
        Self { method: Method::PUT, path: path.to_owned(), body: object.to_string().into_bytes() }
    }

    pub(super) fn request(&self) -> Result<Request<Body>, http::Error> {
        Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header("content-type", "application/json")
            .body(Body::from(self.body.clone()))
    }
}

/// The body of a good answer.
pub(super) async fn send(client: &Client, call: &Call) -> anyhow::Result<Vec<u8>> {
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

/// Sends all of them over so many connections, each with one request under way, and tells how long that took.
pub(super) async fn send_all(server: &Server, calls: Vec<Call>, connections: usize) -> anyhow::Result<Duration> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = server.client().await?;
        // The handshake is not what is measured.
        send(&client, &Call::get("/readyz")).await?;
        clients.push(client);
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
