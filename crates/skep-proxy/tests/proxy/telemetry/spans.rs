//! What a collector is told about single requests.

use serde_json::{Value, json};
use skep_proxy::middleware::{CollectorSettings, TelemetrySettings, collector_headers};

use super::{collector, proxy, settings, span, taking, told, tools, until};
use crate::http::{Request, call, request};
use crate::readers::Reader;
use crate::tls::Authority;
use crate::transparent::server::{Server, reply};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-01";

fn telling(collector: CollectorSettings) -> TelemetrySettings {
    TelemetrySettings { collector: Some(collector), ..settings() }
}

/// What a server was told of a trace: the number of the trace, and of the step.
fn step(parent: &str) -> (String, String) {
    let parts: Vec<_> = parent.split('-').collect();
    assert_eq!(parts.len(), 4, "{parent}");
    (parts[1].to_owned(), parts[2].to_owned())
}

#[tokio::test]
async fn a_call_is_told_with_both_sets_of_attributes() {
    let Some(reader) = Reader::get("a_call_is_told_with_both_sets_of_attributes") else { return };
    let arguments = json!({"hive": 3, "api_key": "hunter2"});
    let message = request(
        "7",
        "tools/call",
        &json!({"name": "feed", "arguments": arguments,
        "_meta": {"io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"}}}),
    );
    for has_legacy_attributes in [true, false] {
        let (server, receiver) = (Server::start(tools).await, taking().await);
        let variables = vec![("YARD".to_owned(), "north".to_owned())];
        let settings = TelemetrySettings { has_legacy_attributes, variables, ..telling(collector(&receiver.address)) };
        let mut before = proxy(&server, settings, vec![]).await;
        let post = Request::post(&message).header("MCP-Protocol-Version", "2025-06-18");
        let post = post.header("User-Agent", "probe/1").header("X-MCP-Server-Name", "other");
        let answer = before.send(post).await.text().await;
        before.stop().await;
        let spans = reader.spans(told(&receiver.seen(), "traces"));
        let told = span(&spans, "tools/call feed");
        assert_eq!((&told["kind"], &told["status"], &told["parent"]), (&json!(2), &json!(1), &json!("")));
        assert_eq!(told["resource"], json!({"service.name": "apiary"}));
        let attributes = told["attributes"].as_object().unwrap();
        let mut expected = json!({
            "http.request.method": "POST", "url.full": format!("http://{}/mcp", before.address), "url.scheme": "http",
            "server.address": before.address, "url.path": "/mcp", "user_agent.original": "probe/1",
            "http.request.body.size": message.to_string().len(), "http.response.status_code": 200,
            "http.response.body.size": answer.len(), "mcp.method.name": "tools/call", "rpc.system.name": "jsonrpc",
            "jsonrpc.protocol.version": "2.0", "jsonrpc.request.id": "7", "gen_ai.tool.name": "feed",
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "hive=3, api_key=[REDACTED]",
            "mcp.client.name": "probe", "mcp.server.name": "other", "network.transport": "tcp",
            "network.protocol.name": "http", "network.protocol.version": "1.1", "client.address": "127.0.0.1",
            "client.port": attributes["client.port"], "environment.YARD": "north",
            "mcp.protocol.version": "2025-06-18",
        });
        if has_legacy_attributes {
            let older = json!({
                "http.method": "POST", "http.url": expected["url.full"], "http.scheme": "http",
                "http.host": before.address, "http.target": "/mcp", "http.user_agent": "probe/1",
                "http.request_content_length": message.to_string().len(), "http.status_code": 200,
                "http.response_content_length": answer.len(), "http.duration_ms": attributes["http.duration_ms"],
                "mcp.method": "tools/call", "rpc.system": "jsonrpc", "rpc.service": "mcp", "mcp.request.id": "7",
                "mcp.resource.id": "feed", "mcp.tool.name": "feed",
                "mcp.tool.arguments": "hive=3, api_key=[REDACTED]", "mcp.transport": "streamable-http",
            });
            expected.as_object_mut().unwrap().extend(older.as_object().unwrap().clone());
        }
        assert_eq!(Value::Object(attributes.clone()), expected);
    }
}

#[tokio::test]
async fn what_went_wrong_is_told_and_what_is_no_message_has_the_name_of_its_path() {
    let Some(reader) = Reader::get("what_went_wrong_is_told_and_what_is_no_message_has_the_name_of_its_path") else {
        return;
    };
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let mut before = proxy(&server, telling(collector(&receiver.address)), vec![]).await;
    before.send(Request::post(&call(1, "broken"))).await.text().await;
    before.send(Request::post(&call(2, "feed")).in_session("gone")).await.text().await;
    before.send(Request::new("DELETE", "/mcp?x=1&access_token=hunter2")).await.text().await;
    before.send(Request::post(&request(3, "resources/read", &json!({"uri": "hive://1"})))).await.text().await;
    let secret = "https://ann:hunter2@h/doc?token=hunter2&page=2";
    before.send(Request::post(&request(4, "resources/read", &json!({"uri": secret})))).await.text().await;
    before.stop().await;
    let spans = reader.spans(told(&receiver.seen(), "traces"));
    let shown = "https://h/doc?token=[REDACTED]&page=2";
    assert_eq!(span(&spans, &format!("resources/read {shown}"))["attributes"]["mcp.resource.uri"], shown);
    let broken = span(&spans, "tools/call broken");
    assert_eq!((&broken["status"], &broken["words"]), (&json!(2), &json!("HTTP 500")));
    assert_eq!(broken["attributes"]["error.type"], "500");
    let gone = span(&spans, "tools/call feed");
    assert_eq!((&gone["status"], &gone["attributes"]["http.response.status_code"]), (&json!(0), &json!(404)));
    assert_eq!(gone["attributes"]["mcp.session.id"], "gone");
    let other = span(&spans, "DELETE /mcp");
    assert_eq!(
        (&other["attributes"]["url.query"], &other["attributes"]["mcp.server.name"]),
        (&json!("x=1&access_token=[REDACTED]"), &Value::Null)
    );
    assert!(!json!(spans).to_string().contains("hunter2"), "{spans:?}");
    assert_eq!(span(&spans, "resources/read hive://1")["attributes"]["mcp.resource.uri"], "hive://1");
}

#[tokio::test]
async fn a_request_is_a_step_below_the_one_that_its_client_names() {
    let Some(reader) = Reader::get("a_request_is_a_step_below_the_one_that_its_client_names") else { return };
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let mut before = proxy(&server, telling(collector(&receiver.address)), vec![]).await;
    let in_header = |message: &Value| {
        Request::post(message).header("traceparent", OTHER).header("tracestate", "a=1").header("baggage", "k=v")
    };
    before.send(in_header(&call(1, "feed"))).await.text().await;
    let seen = server.seen().remove(0);
    assert_eq!((seen.header("tracestate"), seen.header("baggage")), (Some("a=1"), Some("k=v")));
    let first = step(seen.header("traceparent").unwrap());
    // What the message itself says wins, and is replaced where it stands.
    let text = format!(
        r#"{{"jsonrpc":"2.0", "id": 2,"method":"tools/call","params":{{"_meta":{{"tracestate":"b=2","x": 1e2,"traceparent":"{PARENT}"}},  "name":"weigh_hive"}}}}"#
    );
    before.send(in_header(&json!({})).body(text.clone())).await.text().await;
    let seen = server.seen().remove(0);
    let second = step(seen.header("traceparent").unwrap());
    let parent = seen.header("traceparent").unwrap();
    assert_eq!(String::from_utf8_lossy(&seen.body), text.replace(PARENT, parent));
    assert_eq!(seen.header("tracestate"), Some("b=2"));
    // Without either, a trace begins here.
    before.send(Request::post(&call(3, "secret"))).await.text().await;
    let third = step(server.seen()[0].header("traceparent").unwrap());
    before.stop().await;
    let spans = reader.spans(told(&receiver.seen(), "traces"));
    for (name, (trace, step), parent, state) in [
        ("tools/call feed", first, OTHER, "a=1"),
        ("tools/call weigh_hive", second, PARENT, "b=2"),
        ("tools/call secret", third, "---", ""),
    ] {
        let told = span(&spans, name);
        let parent: Vec<_> = parent.split('-').collect();
        assert_eq!((&told["trace"], &told["span"]), (&json!(trace), &json!(step)), "{name}");
        assert_eq!((&told["parent"], &told["state"]), (&json!(parent[2]), &json!(state)), "{name}");
        assert!(parent[1].is_empty() || parent[1] == trace, "{name}");
    }
}

#[tokio::test]
async fn what_is_not_sampled_is_not_told_but_passed_on() {
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let silent = CollectorSettings { traces: Some(0.0), has_metrics: false, ..collector(&receiver.address) };
    let mut before = proxy(&server, telling(silent), vec![]).await;
    let unsampled = PARENT.replace("-01", "-00");
    for parent in [None, Some(unsampled.as_str())] {
        let post = Request::post(&call(1, "feed"));
        before.send(parent.into_iter().fold(post, |post, parent| post.header("traceparent", parent))).await;
        let seen = server.seen().remove(0);
        let passed = seen.header("traceparent").unwrap();
        assert!(passed.ends_with("-00"), "{passed}");
        assert!(parent.is_none() || passed.starts_with(&PARENT[..36]), "{passed}");
    }
    before.stop().await;
    assert!(receiver.seen().is_empty());
}

#[tokio::test]
async fn nobody_is_told_of_traces_and_headers_stay_as_they_are() {
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let metrics_only = CollectorSettings { traces: None, ..collector(&receiver.address) };
    let before = proxy(&server, telling(metrics_only), vec![]).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"traceparent": PARENT}}});
    before.send(Request::post(&message).header("traceparent", OTHER)).await;
    let seen = server.seen().remove(0);
    assert_eq!((seen.header("traceparent"), seen.json()), (Some(OTHER), message));
}

#[tokio::test]
async fn a_collector_is_told_by_tls_with_headers_below_its_base() {
    let Some(reader) = Reader::get("a_collector_is_told_by_tls_with_headers_below_its_base") else { return };
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let authorities = folder.path().join("ca.crt");
    std::fs::write(&authorities, authority.pem()).unwrap();
    let server = Server::start(tools).await;
    let receiver = Server::start_with(Some(authority.acceptor("localhost", &[])), |_| reply(200, &[], "")).await;
    let port = receiver.address.rsplit(':').next().unwrap();
    let secured = CollectorSettings {
        is_insecure: false,
        headers: collector_headers([("x-tenant", "blue")]).unwrap(),
        authorities: Some(authorities),
        delay: std::time::Duration::from_millis(10),
        ..collector(&format!("localhost:{port}/base/"))
    };
    let before = proxy(&server, telling(secured), vec![]).await;
    before.send(Request::post(&call(1, "feed"))).await.text().await;
    let seen = until(&receiver, |seen| !seen.is_empty()).await;
    assert_eq!((seen[0].target.as_str(), seen[0].header("x-tenant")), ("/base/v1/traces", Some("blue")));
    assert_eq!(seen[0].header("content-type"), Some("application/x-protobuf"));
    assert_eq!(reader.spans(told(&seen, "traces")).len(), 1);
}
