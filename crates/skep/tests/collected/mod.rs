//! Traces and metrics from end to end: what the operator writes is what a collector and Prometheus get.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::http::Request;
use crate::place::{Place, eventually, object};
use crate::prometheus::{Prometheus, Scraper};
use crate::protected::Client;
use crate::readers::{Reader, sample};

const COLLECTOR: &str = include_str!("../telemetry/collector.py");
/// What the collector is shown, and nobody else.
pub(crate) const KEY: &str = "a key that nobody prints";

/// A collector in the cluster, and who is to tell it what.
fn needed() -> Vec<Value> {
    let labels = json!({"app": "collector"});
    let container = json!({"name": "main", "image": "shell", "args": ["exec python3 /script/collector.py"],
        "imagePullPolicy": "IfNotPresent", "readinessProbe": {"tcpSocket": {"port": 4318}, "periodSeconds": 1},
        "volumeMounts": [{"name": "script", "mountPath": "/script"}]});
    let volumes = json!([{"name": "script", "configMap": {"name": "collector"}}]);
    let telling = json!({"prometheus": {"enabled": true}, "openTelemetry": {
        "enabled": true, "endpoint": "http://collector.default.svc.cluster.local:4318", "insecure": true,
        "headers": {"x-tenant": "blue"}, "resourceAttributes": {"team": "bees"},
        "sensitiveHeaders": [{"name": "X-Api-Key", "secretKeyRef": {"name": "collector", "key": "key"}}],
        "tracing": {"enabled": true, "samplingRate": "1.0"}, "metrics": {"enabled": true}}});
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
        object("MCPTelemetryConfig", "collector", &telling),
    ]
}

/// The bodies of what the collector was told so far, of one kind.
async fn told(place: &Place, kind: &str) -> Vec<Vec<u8>> {
    let log = place.printed_by("app=collector").await;
    let head = format!("told /v1/{kind} blue {KEY} ");
    log.lines().filter_map(|line| hex::decode(line.strip_prefix(&head)?).ok()).collect()
}

/// A server on each transport tells of a call, and of the numbers at its end.
pub(crate) async fn check(place: &Place, reader: &Reader, prometheus: &Prometheus) {
    for object in needed() {
        place.apply(&object).await;
    }
    for (name, transport) in [("lines", "stdio"), ("streamable", "streamable-http")] {
        let reference = json!({"name": "collector", "serviceName": format!("apiary-{name}")});
        let spec = json!({"image": "skep-demo/echo", "proxyPort": 8080, "transport": transport,
            "telemetryConfigRef": reference});
        let workload = object("MCPServer", name, &spec);
        let address = place.serve(&workload).await;
        place.until_served(&workload, &address, None).await;
        let scraper = prometheus.scrape(&address);
        let (status, sum) = Client::begin(&address).unwrap().call("add", &json!({"a": 2, "b": 3}));
        assert_eq!((status, &sum["result"]["structuredContent"]["sum"]), (200, &json!(5)), "{sum}");
        let page = reader.page(&Request::new("GET", "/metrics").send(&address).text());
        let call = [("mcp_resource_id", "add"), ("server", name), ("transport", transport), ("status", "success")];
        assert!(sample(&page, "toolhive_mcp_requests_total", &call).as_u64().unwrap() >= 1);
        eventually("Prometheus knows of the call", || async { counts_call(&scraper, name) }).await;
        eventually("the collector knows of the call", || async { knows_call(place, reader, name).await }).await;
        assert!(!place.printed(&workload).await.contains(KEY), "the key is told to nobody else");
        // What was not told yet is told when the proxy goes.
        place.delete(&workload).await;
        eventually("the collector knows the numbers", || async { knows_numbers(place, reader, name).await }).await;
    }
}

/// What a dashboard would ask: how many calls, and how long they take.
fn counts_call(scraper: &Scraper, server: &str) -> Result<(), String> {
    let calls = format!("sum(toolhive_mcp_tool_calls_total{{server=\"{server}\", tool=\"add\", status=\"success\"}})");
    if scraper.ask(&calls)? < 1.0 {
        return Err(format!("no calls of {server}"));
    }
    let buckets = "sum by (le) (mcp_server_operation_duration_seconds_bucket{gen_ai_tool_name=\"add\"})";
    let median = scraper.ask(&format!("histogram_quantile(0.5, {buckets})"))?;
    assert!(median > 0.0 && median < 300.0, "{median}");
    assert_eq!(scraper.ask("up{job=\"hive\"}"), Ok(1.0));
    assert_eq!(scraper.ask("count(target_info)"), Ok(1.0));
    assert_eq!(scraper.kind("toolhive_mcp_tool_calls_total"), "counter");
    assert_eq!(scraper.kind("mcp_server_operation_duration_seconds"), "histogram");
    Ok(())
}

async fn knows_call(place: &Place, reader: &Reader, server: &str) -> Result<(), String> {
    let told = told(place, "traces").await;
    let spans = reader.spans(told.iter().map(Vec::as_slice));
    let is_ours = |span: &&Value| {
        span["name"] == "tools/call add" && span["resource"]["service.name"] == format!("apiary-{server}")
    };
    let span = spans.iter().find(is_ours).ok_or_else(|| format!("{spans:?}"))?;
    let resource = &span["resource"];
    assert_eq!((&resource["service.namespace"], &resource["team"]), (&json!("default"), &json!("bees")));
    let attributes = &span["attributes"];
    assert_eq!((&attributes["mcp.tool.name"], &attributes["gen_ai.tool.name"]), (&json!("add"), &json!("add")));
    Ok(())
}

async fn knows_numbers(place: &Place, reader: &Reader, server: &str) -> Result<(), String> {
    let told = told(place, "metrics").await;
    let metrics = reader.metrics(told.iter().map(Vec::as_slice));
    let mut points = metrics
        .iter()
        .filter(|metric| metric["name"] == "toolhive_mcp_tool_calls")
        .flat_map(|metric| metric["points"].as_array().unwrap());
    let is_ours = |point: &Value| point["attributes"] == json!({"server": server, "tool": "add", "status": "success"});
    if points.any(is_ours) { Ok(()) } else { Err(format!("{metrics:?}")) }
}
