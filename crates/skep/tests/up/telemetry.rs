//! Traces and metrics from end to end: what the operator writes is what a collector and Prometheus get.

use k8s_openapi::ByteString;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, LogParams};
use serde_json::{Value, json};

use super::http::Request;
use super::machine::{LIMIT, Machine, eventually};
use super::mcp::until_served;
use super::readers::{Reader, sample};
use super::servers::{adds, serve, servers};
use skep_conformance::ports::free_port;

const EXAMPLE: &str = include_str!("../../../../examples/telemetry.yaml");
const COLLECTOR: &str = include_str!("../telemetry/collector.py");
const KEY: &str = "a key that nobody prints";

/// A collector in the cluster, and who is to tell it what.
fn objects() -> Vec<Value> {
    let labels = json!({"app": "collector"});
    let container = json!({"name": "main", "image": "shell", "args": ["exec python3 /script/collector.py"],
        "imagePullPolicy": "IfNotPresent", "readinessProbe": {"tcpSocket": {"port": 4318}, "periodSeconds": 1},
        "volumeMounts": [{"name": "script", "mountPath": "/script"}]});
    let volumes = json!([{"name": "script", "configMap": {"name": "collector"}}]);
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "collector"},
            "data": {"key": ByteString(KEY.into())}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "collector"},
            "data": {"collector.py": COLLECTOR}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "collector"}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": volumes}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "collector"}, "spec": {
            "selector": labels, "ports": [{"port": 4318}]}}),
        json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPTelemetryConfig",
            "metadata": {"name": "collector"}, "spec": {"prometheus": {"enabled": true}, "openTelemetry": {
                "enabled": true, "endpoint": "http://collector.default.svc.cluster.local:4318", "insecure": true,
                "headers": {"x-tenant": "blue"}, "resourceAttributes": {"team": "bees"},
                "sensitiveHeaders": [{"name": "X-Api-Key", "secretKeyRef": {"name": "collector", "key": "key"}}],
                "tracing": {"enabled": true, "samplingRate": "1.0"}, "metrics": {"enabled": true}}}}),
    ]
}

/// The bodies of what the collector was told so far, of one kind.
async fn told(machine: &Machine, kind: &str) -> Vec<Vec<u8>> {
    let pods = machine.pods().list(&ListParams::default().labels("app=collector")).await.unwrap();
    let Some(pod) = pods.items.first() else { return Vec::new() };
    let log = machine.pods().logs(&pod.name_any(), &LogParams::default()).await.unwrap_or_default();
    let head = format!("told /v1/{kind} blue {KEY} ");
    log.lines().filter_map(|line| hex::decode(line.strip_prefix(&head)?).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_and_prometheus_get_what_happens() {
    let test = "a_collector_and_prometheus_get_what_happens";
    let Some(reader) = Reader::get(test) else { return };
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let port = free_port().unwrap();
    machine.apply(&EXAMPLE.replace("8082", &port.to_string())).await;
    for object in objects() {
        machine.apply(&object.to_string()).await;
    }
    for (name, transport) in [("lines", "stdio"), ("streamable", "streamable-http")] {
        let reference = json!({"name": "collector", "serviceName": format!("apiary-{name}")});
        let address = serve(&machine, name, json!({"transport": transport, "telemetryConfigRef": reference})).await;
        until_served(LIMIT, &address, || machine.said()).await;
        assert!(adds(&address));
        let page = reader.page(&Request::new("GET", "/metrics").send(&address).text());
        let call = [("mcp_resource_id", "add"), ("server", name), ("transport", transport), ("status", "success")];
        assert!(sample(&page, "toolhive_mcp_requests_total", &call).as_u64().unwrap() >= 1);
        eventually("the collector knows of the call", || async {
            let told = told(&machine, "traces").await;
            let spans = reader.spans(told.iter().map(Vec::as_slice));
            let is_ours = |span: &&Value| {
                span["name"] == "tools/call add" && span["resource"]["service.name"] == format!("apiary-{name}")
            };
            let span = spans.iter().find(is_ours).ok_or_else(|| format!("{spans:?}"))?;
            let resource = &span["resource"];
            assert_eq!((&resource["service.namespace"], &resource["team"]), (&json!("default"), &json!("bees")));
            let attributes = &span["attributes"];
            assert_eq!((&attributes["mcp.tool.name"], &attributes["gen_ai.tool.name"]), (&json!("add"), &json!("add")));
            Ok(())
        })
        .await;
        // What was not told yet is told when the proxy goes.
        servers(&machine).delete(name, &DeleteParams::default()).await.unwrap();
        eventually("the collector knows the numbers", || async {
            let told = told(&machine, "metrics").await;
            let metrics = reader.metrics(told.iter().map(Vec::as_slice));
            let mut points = metrics
                .iter()
                .filter(|metric| metric["name"] == "toolhive_mcp_tool_calls")
                .flat_map(|metric| metric["points"].as_array().unwrap());
            let is_ours =
                |point: &Value| point["attributes"] == json!({"server": name, "tool": "add", "status": "success"});
            if points.any(is_ours) { Ok(()) } else { Err(format!("{metrics:?}")) }
        })
        .await;
    }
    let example = format!("127.0.0.1:{port}");
    until_served(LIMIT, &example, || machine.said()).await;
    assert!(adds(&example));
    let page = reader.page(&Request::new("GET", "/metrics").send(&example).text());
    assert!(
        sample(&page, "toolhive_mcp_tool_calls_total", &[("server", "counted"), ("tool", "add")]).as_u64().unwrap()
            >= 1
    );
    assert!(!machine.said().contains(KEY), "the key is told to nobody else");
}
