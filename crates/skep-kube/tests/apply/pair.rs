//! Two servers, ours and a real one, that are asked the same.

use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use skep_conformance::control_plane::ControlPlane;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

/// The same thing on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Both<T> {
    pub ours: T,
    pub theirs: T,
}

impl<T> Both<T> {
    pub(crate) fn as_ref(&self) -> Both<&T> {
        Both { ours: &self.ours, theirs: &self.theirs }
    }

    pub(crate) fn map<U>(self, mut change: impl FnMut(T) -> U) -> Both<U> {
        Both { ours: change(self.ours), theirs: change(self.theirs) }
    }
}

/// A request; the body may differ in what a server has made up.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: Both<Value>,
}

/// What a server answers: a status, warnings and a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub document: Value,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.code < 300
    }
}

pub(crate) struct Pair {
    clients: Both<Client>,
    // What the second client talks to.
    _control_plane: ControlPlane,
}

impl Pair {
    pub(crate) async fn start_or_skip(test: &str) -> Option<Self> {
        let control_plane = ControlPlane::start_or_skip(test).await?;
        let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
        let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap();
        let clients = Both { ours: server.client(), theirs: control_plane.admin().await.unwrap() };
        Some(Self { clients, _control_plane: control_plane })
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Both<Answer> {
        let Both { ours, theirs } = &self.clients;
        let (ours, theirs) = tokio::join!(send(ours, ask, &ask.body.ours), send(theirs, ask, &ask.body.theirs));
        Both { ours, theirs }
    }

    pub(crate) async fn get(&self, path: &str) -> Both<Answer> {
        let body = Both { ours: Value::Null, theirs: Value::Null };
        self.send(&Ask { method: "GET", path: path.to_owned(), content_type: "application/json", body }).await
    }

    /// Sends the same body to both.
    pub(crate) async fn write(
        &self,
        method: &'static str,
        path: String,
        content_type: &'static str,
        body: &Value,
    ) -> Both<Answer> {
        let body = Both { ours: body.clone(), theirs: body.clone() };
        self.send(&Ask { method, path, content_type, body }).await
    }

    /// Installs a CRD and waits until both serve it under `path`.
    pub(crate) async fn install(&self, definition: &Value, path: &str) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
        let installed = self.write("POST", definitions, "application/json", definition).await;
        assert!(installed.ours.is_success() && installed.theirs.is_success(), "{installed:?}");
        for _ in 0..400 {
            let served = self.get(path).await;
            if served.ours.is_success() && served.theirs.is_success() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{path} is not served");
    }
}

async fn send(client: &Client, ask: &Ask, body: &Value) -> Answer {
    let request = http::Request::builder()
        .method(ask.method)
        .uri(&ask.path)
        .header("content-type", ask.content_type)
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
    let warnings = warnings.collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let document = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Answer { code, warnings, document }
}
