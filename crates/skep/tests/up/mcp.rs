//! The words of an MCP client.

use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::machine::eventually_within;
use super::place::speaks;

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The first word of a client.
pub(crate) fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    request(1, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}))
}

pub(crate) fn tool_names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The answer to a message, however it is sent.
pub(crate) fn answer(mut response: Response) -> Value {
    let status = response.status;
    assert!(status == 200, "{status}: {}", response.text());
    if response.is_stream() { response.message().unwrap() } else { response.json() }
}

/// What a tool at an address answers, from the first word on.
pub(crate) fn call_tool(address: &str, name: &str, arguments: &Value) -> Value {
    ask(address, "tools/call", &json!({"name": name, "arguments": arguments}))["result"].clone()
}

/// The names of the tools at an address, from the first word on.
pub(crate) fn list_tools(address: &str) -> Vec<String> {
    tool_names(&ask(address, "tools/list", &json!({})))
}

/// The answer to a request in a session of its own.
fn ask(address: &str, method: &str, params: &Value) -> Value {
    let response = Request::post(&initialize()).send(address);
    let session = response.header("mcp-session-id").unwrap().to_owned();
    answer(response);
    let call = Request::post(&request(2, method, params)).header("Mcp-Session-Id", &session);
    answer(call.header("MCP-Protocol-Version", "2025-06-18").send(address))
}

/// Whether there is a proxy at an address.
pub(crate) fn has_proxy(address: &str) -> Result<(), String> {
    speaks(address, "/health")
}

/// Waits until the server behind an address answers, and not only the proxy before it.
pub(crate) async fn until_served(limit: Duration, address: &str, told: impl Fn() -> String) {
    eventually_within(limit, &format!("{address} is served"), || async {
        has_proxy(address).map_err(|error| format!("{error}\n{}", told()))?;
        let mut response = Request::post(&initialize()).send(address);
        if response.status == 200 {
            Ok(())
        } else {
            let status = response.status;
            Err(format!("{status}: {}\n{}", response.text(), told()))
        }
    })
    .await;
}

/// What a tool answers to a client that knows nothing newer than a stream of events. `None` when it is not served yet.
pub(crate) fn call_tool_by_events(address: &str, name: &str, arguments: &Value) -> Option<Value> {
    has_proxy(address).ok()?;
    let mut stream = Request::new("GET", "/sse").header("Accept", "text/event-stream").send(address);
    if stream.status != 200 {
        return None;
    }
    let target = stream.event()?.data?;
    let target = target.strip_prefix(&format!("http://{address}")).unwrap_or(&target).to_owned();
    let call = request(2, "tools/call", &json!({"name": name, "arguments": arguments}));
    for message in [initialize(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), call] {
        let post = Request::new("POST", &target).header("Content-Type", "application/json").body(&message.to_string());
        assert_eq!(post.send(address).status, 202, "{target}");
        if message["id"] == 1 {
            stream.message()?;
        }
    }
    Some(stream.message()?["result"].clone())
}
