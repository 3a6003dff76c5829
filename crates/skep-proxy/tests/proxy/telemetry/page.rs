//! What Prometheus gets.

use serde_json::{Value, json};
use skep_proxy::middleware::{
    Audit, Authentication, Authorizer, CedarSettings, FailurePolicy, Power, PrometheusSettings, Step, Telemetry,
    TelemetrySettings,
};
use skep_proxy::transparent::Dialect;

use super::{prometheus, proxy, settings, tools};
use crate::authz::guarded;
use crate::http::{Request, call, request};
use crate::readers::{Reader, sample};
use crate::transparent::server::{Before, Server, reply};
use crate::webhook;

fn served() -> TelemetrySettings {
    TelemetrySettings { prometheus: Some(prometheus()), ..settings() }
}

async fn page(reader: &Reader, before: &Before) -> Vec<Value> {
    let mut answer = before.send(Request::new("GET", "/metrics")).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    reader.page(&answer.text().await)
}

#[tokio::test]
async fn addresses_of_resources_are_labels_without_secrets() {
    let Some(reader) = Reader::get("addresses_of_resources_are_labels_without_secrets") else { return };
    let server = Server::start(tools).await;
    let before = proxy(&server, served(), vec![]).await;
    let secret = json!({"uri": "https://ann:hunter2@h/doc?token=hunter2"});
    before.send(Request::post(&request(1, "resources/read", &secret))).await.text().await;
    let page = page(&reader, &before).await;
    let read = [("mcp_method", "resources/read"), ("mcp_resource_id", "https://h/doc?token=[REDACTED]")];
    assert_eq!(sample(&page, "toolhive_mcp_requests_total", &read), 1);
    assert!(!json!(page).to_string().contains("hunter2"));
}

#[tokio::test]
async fn requests_are_counted_under_the_names_that_dashboards_know() {
    let Some(reader) = Reader::get("requests_are_counted_under_the_names_that_dashboards_know") else { return };
    let server = Server::start(tools).await;
    let before = proxy(&server, served(), vec![]).await;
    for tool in ["feed", "feed", "broken"] {
        before.send(Request::post(&call(1, tool))).await.text().await;
    }
    before.send(Request::post(&request(2, "prompts/get", &json!({"name": "greet"})))).await.text().await;
    before.send(Request::new("DELETE", "/mcp")).await.text().await;
    let page = page(&reader, &before).await;
    let of = |status: &'static str, code: &'static str, tool: &'static str| {
        [
            ("method", "POST"),
            ("status_code", code),
            ("status", status),
            ("mcp_method", "tools/call"),
            ("mcp_resource_id", tool),
            ("server", "hive"),
            ("transport", "streamable-http"),
        ]
    };
    let (fed, broken) = (of("success", "200", "feed"), of("error", "500", "broken"));
    assert_eq!(sample(&page, "toolhive_mcp_requests_total", &fed), 2);
    assert_eq!(sample(&page, "toolhive_mcp_requests_total", &broken), 1);
    assert_eq!(sample(&page, "toolhive_mcp_request_duration_seconds_count", &fed), 2);
    assert!(sample(&page, "toolhive_mcp_request_duration_seconds_sum", &fed).as_f64().unwrap() > 0.0);
    let unknown = [("method", "DELETE"), ("mcp_method", "unknown")];
    assert_eq!(sample(&page, "toolhive_mcp_requests_total", &unknown), 1);
    let calls = |tool, status| {
        sample(&page, "toolhive_mcp_tool_calls_total", &[("server", "hive"), ("tool", tool), ("status", status)])
    };
    assert_eq!((calls("feed", "success"), calls("broken", "error")), (json!(2), json!(1)));
    let operation = [
        ("mcp_method_name", "tools/call"),
        ("jsonrpc_protocol_version", "2.0"),
        ("network_transport", "tcp"),
        ("network_protocol_name", "http"),
        ("network_protocol_version", "1.1"),
        ("gen_ai_operation_name", "execute_tool"),
        ("gen_ai_tool_name", "broken"),
        ("error_type", "500"),
    ];
    assert_eq!(sample(&page, "mcp_server_operation_duration_seconds_count", &operation), 1);
    let prompt = [("mcp_method_name", "prompts/get"), ("gen_ai_prompt_name", "greet")];
    assert_eq!(sample(&page, "mcp_server_operation_duration_seconds_count", &prompt), 1);
    let operations = page.iter().filter(|sample| sample["name"] == "mcp_server_operation_duration_seconds_count");
    assert_eq!(operations.count(), 3, "what is no message is no operation");
    let bounds: Vec<_> = page
        .iter()
        .filter(|sample| {
            sample["name"] == "toolhive_mcp_request_duration_seconds_bucket"
                && sample["labels"]["mcp_method"] == "unknown"
        })
        .map(|sample| sample["labels"]["le"].as_str().unwrap())
        .collect();
    let expected = "0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 +Inf";
    assert_eq!(bounds, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(
        sample(&page, "toolhive_mcp_active_connections", &[("server", "hive"), ("transport", "streamable-http")]),
        0
    );
    assert_eq!(sample(&page, "target_info", &[("service_name", "apiary")]), 1);
    assert!(sample(&page, "process_resident_memory_bytes", &[]).as_f64().unwrap() > 1e6);
}

#[tokio::test]
async fn trap_52_labels_show_the_tool_that_callbacks_have_chosen_and_refusals_count_as_errors() {
    let test = "trap_52_labels_show_the_tool_that_callbacks_have_chosen_and_refusals_count_as_errors";
    let Some(reader) = Reader::get(test) else { return };
    let (server, hook) = (Server::start(tools).await, webhook::renaming("weigh_hive").await);
    let policies = vec![r#"permit(principal, action, resource == Tool::"feed");"#.to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let behind = vec![
        webhook::step(Power::Change, vec![webhook::settings(&hook.address, FailurePolicy::Fail)]),
        Step::Authorize(authorizer),
    ];
    let before = proxy(&server, served(), behind).await;
    assert_eq!(before.send(Request::post(&call(1, "feed"))).await.status, 403);
    let page = page(&reader, &before).await;
    assert_eq!(sample(&page, "toolhive_mcp_tool_calls_total", &[]), 1);
    assert_eq!(sample(&page, "toolhive_mcp_tool_calls_total", &[("tool", "weigh_hive"), ("status", "error")]), 1);
    assert_eq!(
        sample(&page, "toolhive_mcp_requests_total", &[("mcp_resource_id", "weigh_hive"), ("status_code", "403")]),
        1
    );
}

#[tokio::test]
async fn trap_55_a_method_of_8_mib_is_a_label_of_128_bytes_and_nothing_is_without_a_name() {
    let test = "trap_55_a_method_of_8_mib_is_a_label_of_128_bytes_and_nothing_is_without_a_name";
    let Some(reader) = Reader::get(test) else { return };
    let server = Server::start(tools).await;
    let unnamed = TelemetrySettings { server: String::new(), transport: String::new(), ..served() };
    let before = proxy(&server, unnamed, vec![]).await;
    let long = "m".repeat((8 << 20) - 100);
    before.send(Request::post(&request(1, &long, &json!({})))).await.text().await;
    let page = page(&reader, &before).await;
    let label = format!("{}...", "m".repeat(125));
    assert_eq!(
        sample(
            &page,
            "toolhive_mcp_requests_total",
            &[("mcp_method", &label), ("server", "unknown"), ("transport", "unknown")]
        ),
        1
    );
    assert_eq!(sample(&page, "mcp_server_operation_duration_seconds_count", &[("mcp_method_name", &label)]), 1);
    let labels = page.iter().flat_map(|sample| sample["labels"].as_object().unwrap().values());
    assert!(labels.into_iter().all(|value| value.as_str().unwrap().len() <= 128));
}

#[tokio::test]
async fn the_beginning_of_a_stream_is_counted_and_its_end_noticed() {
    let Some(reader) = Reader::get("the_beginning_of_a_stream_is_counted_and_its_end_noticed") else { return };
    let server = Server::start(|_| reply(200, &[("content-type", "text/event-stream")], ": alive\n\n")).await;
    let telemetry = Telemetry::new(TelemetrySettings { transport: "sse".to_owned(), ..served() }).unwrap();
    let before = guarded(&server, Dialect::Sse, vec![Step::Parse, Step::Telemetry(telemetry)]).await;
    before.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await.text().await;
    let page = page(&reader, &before).await;
    let opened = [("mcp_method", "sse_connection"), ("status_code", "200"), ("method", "GET"), ("status", "success")];
    assert_eq!(sample(&page, "toolhive_mcp_requests_total", &opened), 1);
    let counted = page.iter().find(|sample| sample["labels"]["mcp_method"] == "sse_connection").unwrap();
    assert_eq!(counted["labels"]["mcp_resource_id"], Value::Null);
    assert!(
        page.iter().all(|sample| sample["labels"]["mcp_method"] != "sse_connection"
            || sample["name"] == "toolhive_mcp_requests_total")
    );
    assert_eq!(sample(&page, "toolhive_mcp_active_connections", &[("connection_type", "sse")]), 0);
}

#[tokio::test]
async fn trap_57_a_port_that_is_taken_is_no_reason_not_to_serve_and_a_port_is_given_back() {
    let server = Server::start(tools).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let at = |port| TelemetrySettings {
        prometheus: Some(PrometheusSettings { port, is_on_transport: false, ..prometheus() }),
        ..settings()
    };
    let mut before = proxy(&server, at(port), vec![]).await;
    assert_eq!(before.send(Request::post(&call(1, "feed"))).await.status, 200);
    assert_eq!(before.send(Request::new("GET", "/metrics")).await.status, 404, "it is not wanted here");
    before.stop().await;
    drop(taken);
    // Again and again, at the same port.
    for _ in 0..3 {
        let mut before = proxy(&server, at(port), vec![]).await;
        let address = format!("127.0.0.1:{port}");
        assert_eq!(Request::new("GET", "/metrics").send(&address).await.status, 200);
        assert_eq!(Request::new("GET", "/mcp").send(&address).await.status, 404, "there is nothing else");
        assert_eq!(Request::new("POST", "/metrics").send(&address).await.status, 405);
        before.stop().await;
        assert!(std::net::TcpStream::connect(&address).is_err(), "it is still open");
    }
    let elsewhere = PrometheusSettings { host: "192.0.2.1".to_owned(), ..prometheus() };
    let refused = Telemetry::new(TelemetrySettings { prometheus: Some(elsewhere), ..settings() }).unwrap_err();
    assert!(refused.to_string().starts_with("prometheusPort: cannot listen on 192.0.2.1:0"), "{refused}");
}

#[tokio::test]
async fn what_is_refused_before_anybody_counts_is_recorded_and_not_counted() {
    let Some(reader) = Reader::get("what_is_refused_before_anybody_counts_is_recorded_and_not_counted") else { return };
    let (server, folder) = (Server::start(tools).await, tempfile::tempdir().unwrap());
    let steps = vec![
        Step::Audit(Audit::new(crate::middleware::audit::settings(&folder)).unwrap()),
        Step::Authenticate(Authentication::Anonymous),
        Step::Parse,
        Step::Telemetry(Telemetry::new(served()).unwrap()),
    ];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    assert_eq!(before.send(Request::post(&json!(7))).await.status, 400);
    let page = page(&reader, &before).await;
    assert!(page.iter().all(|sample| sample["name"] != "toolhive_mcp_requests_total"), "{page:?}");
    assert_eq!(crate::middleware::audit::records(&folder, 1).await.len(), 1);
}
