//! MCPServers and MCPRemoteProxies from end to end: the operator makes a proxy, the proxy brings up its server, and a
//! client calls a tool.

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::http::Request;
use super::machine::{LIMIT, Machine, eventually};
use super::mcp::{call_tool, call_tool_by_events, until_served};
use skep_conformance::ports::free_port;

pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> String {
    super::place::object(kind, name, spec).to_string()
}

pub(crate) fn servers(machine: &Machine) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("toolhive.stacklok.dev", "v1beta1", "MCPServer");
    let resource = ApiResource::from_gvk_with_plural(&kind, "mcpservers");
    Api::default_namespaced_with(machine.client.clone(), &resource)
}

/// The demo server behind a proxy; its address on this machine.
pub(crate) async fn serve(machine: &Machine, name: &str, mut spec: Value) -> String {
    let port = free_port().unwrap();
    spec["image"] = json!("skep-demo/echo");
    spec["proxyPort"] = json!(port);
    machine.apply(&object("MCPServer", name, &spec)).await;
    format!("127.0.0.1:{port}")
}

pub(crate) fn adds(address: &str) -> bool {
    call_tool(address, "add", &json!({"a": 2, "b": 3}))["structuredContent"]["sum"] == 5
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transport_is_served_from_end_to_end() {
    let Some(machine) = Machine::start_or_skip("every_transport_is_served_from_end_to_end").await else { return };
    machine.until_installed().await;
    let lines = serve(&machine, "lines", json!({"transport": "stdio"})).await;
    let lines_as_events = serve(&machine, "lines-as-events", json!({"transport": "stdio", "proxyMode": "sse"})).await;
    let events = serve(&machine, "events", json!({"transport": "sse", "mcpPort": 9000})).await;
    let streamable = serve(&machine, "streamable", json!({"transport": "streamable-http"})).await;
    let port = streamable.rsplit(':').next().unwrap();
    let (elsewhere, url) =
        (free_port().unwrap(), format!("http://mcp-streamable-proxy.default.svc.cluster.local:{port}/mcp"));
    let spec = json!({"remoteUrl": url, "allowPrivateEndpoint": true, "proxyPort": elsewhere});
    machine.apply(&object("MCPRemoteProxy", "elsewhere", &spec)).await;
    for address in [&lines, &streamable, &format!("127.0.0.1:{elsewhere}")] {
        until_served(LIMIT, address, || machine.said()).await;
        assert!(adds(address), "{address}");
    }
    for address in [&lines_as_events, &events] {
        eventually(&format!("{address} is served"), || async {
            let told = call_tool_by_events(address, "add", &json!({"a": 2, "b": 3})).ok_or("not yet")?;
            assert_eq!(told["structuredContent"]["sum"], 5, "{address}: {told}");
            Ok(())
        })
        .await;
    }
    each_is_verified(&machine, &["lines", "lines-as-events", "events", "streamable"]).await;
    a_pod_that_is_replaced_is_found_again(&machine, &lines, &streamable).await;
    nothing_comes_back(&machine, "lines").await;
}

/// The operator has shaken hands with every server, whatever it speaks.
async fn each_is_verified(machine: &Machine, names: &[&str]) {
    for name in names {
        eventually(&format!("{name} is verified"), || async {
            let server = servers(machine).get(name).await.unwrap();
            let conditions = server.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let verified = conditions.into_iter().find(|condition| condition["type"] == "Verified");
            let verified = verified.ok_or_else(|| "nobody has asked".to_owned())?;
            if verified["status"] == "True" { Ok(()) } else { Err(verified.to_string()) }
        })
        .await;
    }
}

/// A client keeps its session while the server behind the proxy is replaced.
async fn a_pod_that_is_replaced_is_found_again(machine: &Machine, lines: &str, streamable: &str) {
    let sessions = [lines, streamable].map(|address| {
        let response = Request::post(&super::mcp::initialize()).send(address);
        (address, response.header("mcp-session-id").unwrap().to_owned())
    });
    for name in ["lines-0", "streamable-0"] {
        let before = machine.pods().get(name).await.unwrap().uid();
        machine.pods().delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("another {name}"), || async {
            let after = machine.pods().get_opt(name).await.unwrap().and_then(|pod| pod.uid());
            if after.is_some() && after != before { Ok(()) } else { Err(format!("{after:?}")) }
        })
        .await;
    }
    let call = super::mcp::request(7, "tools/call", &json!({"name": "echo", "arguments": {"message": "still here"}}));
    for (address, session) in sessions {
        eventually(&format!("{address} answers in its session"), || async {
            let request = Request::post(&call).header("Mcp-Session-Id", &session);
            let mut response = request.header("MCP-Protocol-Version", "2025-06-18").send(address);
            if response.status != 200 {
                let status = response.status;
                return Err(format!("{status}: {}", response.text()));
            }
            let told = super::mcp::answer(response);
            let text = &told["result"]["content"][0]["text"];
            if text == "still here" { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
    }
}

/// What is deleted stays so: no proxy brings its server back.
async fn nothing_comes_back(machine: &Machine, name: &str) {
    servers(machine).delete(name, &DeleteParams::default()).await.unwrap();
    eventually(&format!("{name} and its pods are gone"), || async {
        let server = servers(machine).get_opt(name).await.unwrap().is_some();
        let pods = machine.pods().list(&ListParams::default()).await.unwrap().items;
        let proxies = pods.iter().filter(|pod| pod.labels().get("toolhive-name").is_some_and(|of| of == name));
        let left = proxies.map(kube::ResourceExt::name_any).collect::<Vec<_>>();
        if !server && left.is_empty() { Ok(()) } else { Err(format!("{server} {left:?}")) }
    })
    .await;
    let sets: Api<k8s_openapi::api::apps::v1::StatefulSet> = Api::default_namespaced(machine.client.clone());
    assert!(sets.get_opt(name).await.unwrap().is_none(), "the proxy has brought it back");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_is_not_left_out() {
    let Some(machine) = Machine::start_or_skip("what_was_asked_for_is_not_left_out").await else { return };
    machine.until_installed().await;
    let upstream = json!({"name": "login", "type": "oidc",
        "oidcConfig": {"issuerUrl": "https://login.example.com", "clientId": "skep"}});
    let sign_in = json!({"type": "embeddedAuthServer",
        "embeddedAuthServer": {"issuer": "https://hive.example.com", "upstreamProviders": [upstream]}});
    let login = json!({"type": "inline", "inline": {"issuer": "https://hive.example.com"}});
    let wanted = [("MCPExternalAuthConfig", "sign-in", sign_in), ("MCPOIDCConfig", "login", login)];
    for (kind, name, spec) in wanted {
        machine.apply(&object(kind, name, &spec)).await;
    }
    let spec = json!({"transport": "stdio", "authServerRef": {"kind": "MCPExternalAuthConfig", "name": "sign-in"},
        "oidcConfigRef": {"name": "login", "audience": "https://hive.example.com/mcp",
            "resourceUrl": "https://hive.example.com/mcp"}});
    serve(&machine, "guarded", spec).await;
    eventually("the proxy refuses to start, and says why", || async {
        let chosen = ListParams::default().labels("toolhive-name=guarded");
        let pods = machine.pods().list(&chosen).await.unwrap().items;
        let pod = pods.first().ok_or("there is no pod yet")?;
        let log = machine.pods().logs(&pod.name_any(), &kube::api::LogParams::default()).await;
        let log = log.map_err(|error| error.to_string())?;
        if log.contains("cannot do yet: embedded_auth_server_config (auth server)") { Ok(()) } else { Err(log) }
    })
    .await;
    let sets: Api<k8s_openapi::api::apps::v1::StatefulSet> = Api::default_namespaced(machine.client.clone());
    assert!(sets.get_opt("guarded").await.unwrap().is_none(), "its server was started all the same");
}
