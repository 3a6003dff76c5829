//! Talking to the real server.

use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// What the server answers: a status and a document.
#[derive(Debug)]
pub(crate) struct Answer {
    pub code: u16,
    pub document: Value,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.code < 300
    }
}

pub(crate) async fn send(client: &Client, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let document = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Answer { code, document }
}
