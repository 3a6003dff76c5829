//! What a collector is told about all requests together.

use serde_json::{Value, json};
use skep_proxy::middleware::TelemetrySettings;

use super::{collector, proxy, settings, taking, told, tools};
use crate::http::{Request, call};
use crate::readers::Reader;
use crate::transparent::server::Server;

#[tokio::test]
async fn a_collector_gets_the_same_numbers_as_the_page() {
    let Some(reader) = Reader::get("a_collector_gets_the_same_numbers_as_the_page") else { return };
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let telling = TelemetrySettings {
        transport: "stdio".to_owned(),
        collector: Some(collector(&receiver.address)),
        ..settings()
    };
    let mut before = proxy(&server, telling, vec![]).await;
    for tool in ["feed", "feed", "broken"] {
        before.send(Request::post(&call(1, tool))).await.text().await;
    }
    before.stop().await;
    let metrics = reader.metrics(told(&receiver.seen(), "metrics"));
    let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let points = |name: &str, key: &str, value: &str| -> Vec<Value> {
        let all = of(name)["points"].as_array().unwrap().iter();
        all.filter(|point| point["attributes"][key] == value).cloned().collect()
    };
    let requests = of("toolhive_mcp_requests");
    assert_eq!(
        (&requests["kind"], &requests["is_monotonic"], &requests["is_cumulative"]),
        (&json!("sum"), &json!(true), &json!(true))
    );
    assert_eq!(requests["resource"], json!({"service.name": "apiary"}));
    let fed = &points("toolhive_mcp_requests", "mcp_resource_id", "feed")[0];
    let labels = json!({"method": "POST", "status_code": "200", "status": "success", "mcp_method": "tools/call",
        "mcp_resource_id": "feed", "server": "hive", "transport": "stdio"});
    assert_eq!((&fed["value"], &fed["attributes"]), (&json!(2), &labels));
    let took = of("toolhive_mcp_request_duration");
    assert_eq!(
        (&took["kind"], &took["unit"], &took["is_cumulative"]),
        (&json!("histogram"), &json!("s"), &json!(true))
    );
    let fed = &points("toolhive_mcp_request_duration", "mcp_resource_id", "feed")[0];
    assert_eq!((&fed["count"], &fed["attributes"]), (&json!(2), &labels));
    let bounds = json!([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0]);
    assert_eq!(fed["bounds"], bounds);
    let operation = &points("mcp.server.operation.duration", "gen_ai.tool.name", "broken")[0];
    let expected = json!({"mcp.method.name": "tools/call", "jsonrpc.protocol.version": "2.0", "network.transport": "pipe",
        "error.type": "500", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "broken"});
    assert_eq!((&operation["count"], &operation["attributes"]), (&json!(1), &expected));
    assert_eq!(points("toolhive_mcp_tool_calls", "tool", "broken")[0]["value"], 1);
    let active = of("toolhive_mcp_active_connections");
    assert_eq!((&active["is_monotonic"], &active["points"][0]["value"]), (&json!(false), &json!(0)));
}
