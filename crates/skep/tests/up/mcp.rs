//! The words of an MCP client.

use serde_json::{Value, json};

use super::http::{Request, Response};

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
    let response = Request::post(&initialize()).send(address);
    let session = response.header("mcp-session-id").unwrap().to_owned();
    answer(response);
    let message = request(2, "tools/call", &json!({"name": name, "arguments": arguments}));
    let call = Request::post(&message).header("Mcp-Session-Id", &session);
    answer(call.header("MCP-Protocol-Version", "2025-06-18").send(address))["result"].clone()
}
