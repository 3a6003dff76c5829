//! Requests and answers in both encodings.

use http_body_util::BodyExt as _;
use serde_json::Value;
use skep_kube::protobuf;

pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(crate) struct Client(pub(crate) kube::Client);

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The document, in whichever encoding it came.
    pub(crate) fn document(&self) -> Value {
        match self.content_type.as_str() {
            PROTOBUF => protobuf::decode(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body)),
            _ => serde_json::from_slice(&self.body)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body))),
        }
    }
}

impl Client {
    pub(crate) async fn send(&self, method: &str, path: &str, accept: &str, body: (&str, Vec<u8>)) -> Answer {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", body.0)
            .header("accept", accept)
            .header("user-agent", "protobuf-test")
            .body(kube::client::Body::from(body.1))
            .unwrap();
        let response = self.0.send(request).await.unwrap();
        let status = response.status().as_u16();
        let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        Answer { status, content_type, body }
    }

    pub(crate) async fn get(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, accept, (JSON, Vec::new())).await
    }

    /// Sends an object in one encoding and wants the answer in the same.
    pub(crate) async fn post(&self, path: &str, encoding: &str, object: &Value) -> Answer {
        let body = if encoding == PROTOBUF { protobuf::encode(object).unwrap() } else { object.to_string().into() };
        self.send("POST", path, encoding, (encoding, body)).await
    }
}
