//! What is written to the servers.

use anyhow::Context as _;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::load::{Call, send};

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KIND: &str = "MCPServer";
const SERVED_LIMIT: Duration = Duration::from_secs(30);

/// Installs the custom resource and gives the path of its collection, once that is served.
pub(super) async fn install(client: &Client) -> anyhow::Result<String> {
    let entry = skep_api::crd::ALL.iter().find(|entry| entry.document()["spec"]["names"]["kind"] == KIND);
    let document = entry.context("no definition of MCPServer")?.document();
    send(client, &Call::post(DEFINITIONS, &document)).await?;
    let names = &document["spec"];
    let (group, plural) = (&names["group"], &names["names"]["plural"]);
    let (group, plural) = (group.as_str().unwrap_or_default(), plural.as_str().unwrap_or_default());
    let collection = format!("/apis/{group}/v1beta1/namespaces/default/{plural}");
    let begun = Instant::now();
    while send(client, &Call::get(&collection)).await.is_err() {
        anyhow::ensure!(begun.elapsed() < SERVED_LIMIT, "{collection} is not served");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(collection)
}

/// A custom resource of about 3 KB.
pub(super) fn custom_resource(number: usize) -> Value {
    let environment: Vec<Value> =
        (0..24).map(|index| json!({ "name": format!("SETTING_{index}"), "value": format!("{number:064}") })).collect();
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1",
        "kind": KIND,
        "metadata": { "name": format!("server-{number}"), "labels": { "app": "bench" } },
        "spec": { "image": "example.com/server:1", "transport": "stdio", "env": environment },
    })
}

pub(super) fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "fill": "x".repeat(1000) } })
}
