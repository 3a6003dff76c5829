//! The API server, and what is on it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use skep_conformance::control_plane::{BINARIES_VARIABLE, ControlPlane};

use crate::load::{Call, send};

/// Where the operator looks.
pub(super) const WATCHED: &str = "watched";
/// Where only the plain client writes.
pub(super) const PLAIN: &str = "plain";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The last child of a server that is written.
const SERVICES: &str = "services";
const SERVED_LIMIT: Duration = Duration::from_mins(1);
const CHILDREN_LIMIT: Duration = Duration::from_mins(20);

/// Starts an API server that has all our kinds, and two namespaces.
pub(super) async fn start() -> anyhow::Result<ControlPlane> {
    let binaries = std::env::var_os(BINARIES_VARIABLE)
        .with_context(|| format!("no API server: set {BINARIES_VARIABLE}=\"$(cargo xtask control-plane)\""))?;
    let plane = ControlPlane::start_durable(Path::new(&binaries)).await?;
    let client = plane.admin().await?;
    for entry in skep_api::crd::ALL {
        send(&client, &Call::post(DEFINITIONS, &entry.document())).await?;
    }
    let begun = Instant::now();
    for entry in skep_api::crd::ALL {
        let definition = &entry.definition;
        let (group, version) = (skep_api::kind::GROUP, definition.storage_version());
        let list = Call::get(&format!("/apis/{group}/{version}/{}", definition.plural));
        while send(&client, &list).await.is_err() {
            anyhow::ensure!(begun.elapsed() < SERVED_LIMIT, "{} are not served", definition.plural);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for namespace in [WATCHED, PLAIN] {
        send(&client, &Call::post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))).await?;
    }
    Ok(plane)
}

pub(super) async fn clients(plane: &ControlPlane, count: usize) -> anyhow::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(plane.admin().await?);
    }
    Ok(clients)
}

pub(super) fn servers(namespace: &str) -> String {
    format!("/apis/toolhive.stacklok.dev/v1beta1/namespaces/{namespace}/mcpservers")
}

/// A server as people write it.
pub(super) fn server(name: &str) -> Value {
    json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name},
        "spec": {"image": "example.com/server:1", "transport": "streamable-http", "mcpPort": 8080, "args": ["serve"],
            "env": [{"name": "LOG_LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}}}})
}

/// Reads the objects of a collection.
pub(super) async fn list(client: &Client, collection: &str) -> anyhow::Result<Vec<Value>> {
    let mut list: Value = serde_json::from_slice(&send(client, &Call::get(collection)).await?)?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => anyhow::bail!("{collection} is no list"),
    }
}

/// Sees Services come from the moment of its making.
#[derive(Debug)]
pub(super) struct Arrivals(kube::client::Body);

impl Arrivals {
    pub(super) async fn begin(client: &Client) -> anyhow::Result<Self> {
        let services = format!("/api/v1/namespaces/{WATCHED}/{SERVICES}");
        let list: Value = serde_json::from_slice(&send(client, &Call::get(&format!("{services}?limit=1"))).await?)?;
        let from = list["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
        let watch = Call::get(&format!("{services}?watch=true&resourceVersion={from}"));
        Ok(Self(client.send(watch.request()?).await?.into_body()))
    }

    /// Waits for so many of them; each is told of in a line.
    pub(super) async fn wait_for(mut self, count: usize) -> anyhow::Result<()> {
        let all = async {
            let mut arrived = 0;
            while arrived < count {
                let frame = self.0.frame().await.context("the watch ended")??;
                arrived += frame.data_ref().map_or(0, |data| data.split(|byte| *byte == b'\n').count() - 1);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(CHILDREN_LIMIT, all).await.context("the children do not come")?
    }
}
