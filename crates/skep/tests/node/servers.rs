//! MCPServers on a real control plane: `skep operator` looks after them, and `skep node` runs their pods.

use serde_json::{Value, json};
use skep_conformance::race;

use super::cluster::Cluster;
use super::http::Request;
use super::npm::Packages;
use super::place::{Place, object};
use super::prometheus::Prometheus;
use super::protected::{self, ANOTHER_KEY, Client, DEPLOYMENT, KEY};
use super::readers::Reader;
use super::suite::check;
use super::{ALL, answers, collected, layers, outgoing};

fn server(name: &str, mut spec: Value) -> Value {
    spec["image"] = json!("skep-demo/echo");
    spec["proxyPort"] = json!(8080);
    object("MCPServer", name, &spec)
}

/// The address of a proxy on this machine, by a balancer of its own.
async fn offer(cluster: &Cluster, name: &str) -> String {
    let pods = json!({"app": "mcpserver", "app.kubernetes.io/instance": name});
    Place::new(&cluster.client().await).offer(name, &pods, 8080).await
}

fn tell(address: &str, session: Option<&str>, method: &str, params: &Value) -> Option<(Value, Option<String>)> {
    // A service without ready pods takes connections and drops them.
    if !answers(address.rsplit(':').next()?.parse().ok()?) {
        return None;
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post(&message).header("MCP-Protocol-Version", "2025-06-18");
    let request = session.into_iter().fold(request, |request, id| request.header("Mcp-Session-Id", id));
    let mut response = request.send(address);
    if response.status != 200 {
        return None;
    }
    let session = response.header("mcp-session-id").map(str::to_owned);
    let answer = if response.is_stream() { response.message()? } else { response.json() };
    Some((answer["result"].clone(), session))
}

/// Whether a client that comes to an address can add.
fn adds(address: &str) -> bool {
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let Some((_, session)) = tell(address, None, "initialize", &hello) else { return false };
    let call = json!({"name": "add", "arguments": {"a": 2, "b": 3}});
    let answer = tell(address, session.as_deref(), "tools/call", &call);
    answer.is_some_and(|(result, _)| result["structuredContent"]["sum"] == 5)
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_servers_are_served() {
    let Some(cluster) = Cluster::start_or_skip("mcp_servers_are_served").await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    for transport in ["stdio", "streamable-http"] {
        cluster.apply(&server(transport, json!({"transport": transport})));
        let address = offer(&cluster, transport).await;
        let listed = ["get", "mcpservers,statefulsets,pods", "-o", "wide"];
        cluster.until(&format!("{transport} is served"), &listed, |_| adds(&address)).await;
        let path = "jsonpath={.status.phase}";
        cluster.until("it is known", &["get", "mcpserver", transport, "-o", path], |phase| phase == "Ready").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_callbacks_protect_a_server() {
    let Some(cluster) = Cluster::start_or_skip("policies_and_callbacks_protect_a_server").await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    for object in protected::callbacks() {
        cluster.apply(&object);
    }
    cluster.apply(&server("streamable", protected::spec("streamable", "streamable-http")));
    let address = offer(&cluster, "streamable").await;
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let listed = ["get", "mcpservers,deployments,statefulsets,pods", "-o", "wide"];
    cluster.until("it is served", &listed, |_| answers(port) && Client::begin(&address).is_some()).await;
    let client = Client::begin(&address).unwrap();
    client.check(KEY);
    cluster.apply(&protected::rotated());
    cluster.until("the new keys are used", &listed, |_| client.is_signed_with(ANOTHER_KEY).is_ok()).await;
    client.check(ANOTHER_KEY);
    cluster.said(&["delete", "deployment", DEPLOYMENT]);
    let is_missed = || client.call("add", &json!({"a": 2, "b": 3})).0 == 500;
    cluster.until("the callbacks are missed", &listed, |_| is_missed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_say_what_clients_of_proxies_meet() {
    let test = "manifests_say_what_clients_of_proxies_meet";
    let Some(needs) = layers::Needs::get(test) else { return };
    let Some(cluster) = Cluster::start_or_skip(test).await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    let place = Place::new(&cluster.client().await);
    layers::check(&place, &needs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_and_prometheus_get_what_happens() {
    let test = "a_collector_and_prometheus_get_what_happens";
    let (Some(reader), Some(prometheus)) = (Reader::get(test), Prometheus::get(test)) else { return };
    let Some(cluster) = Cluster::start_or_skip(test).await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    collected::check(&Place::new(&cluster.client().await), &reader, &prometheus).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_shown_credentials_of_its_own() {
    let Some(cluster) = Cluster::start_or_skip("a_server_is_shown_credentials_of_its_own").await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    outgoing::check(&Place::new(&cluster.client().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_suite_does_not_notice_the_proxy_of_the_operator_on_a_real_control_plane() {
    let test = "the_public_suite_does_not_notice_the_proxy_of_the_operator_on_a_real_control_plane";
    let Some(packages) = Packages::get(test) else { return };
    let Some(cluster) = Cluster::start_or_skip(test).await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    cluster.apply(&server("streamable", json!({"transport": "streamable-http"})));
    let address = offer(&cluster, "streamable").await;
    cluster.until("it is served", &["get", "mcpservers,statefulsets,pods"], |_| adds(&address)).await;
    check(&packages, "the operator's proxy on a real control plane", &address, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn generation_race_of_mcp_servers() {
    let Some(cluster) = Cluster::start_or_skip("generation_race_of_mcp_servers").await else { return };
    let Some(_node) = cluster.join(ALL) else { return };
    let _operator = cluster.operate();
    let told = race::servers::run(cluster.client().await).await.unwrap();
    println!("figure: {told} on the real control plane");
}
