//! A call that waits at the proxy for its client is for that client, that call and once.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use crate::http::Request;
use crate::peer::{STATELESS, stateless_headers};
use crate::process::Server;
use crate::proxied::Proxied;

fn call(proxied: &Proxied, token: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let message = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
    let post = stateless_headers(Request::post(&message), &message, STATELESS);
    let mut response = post.header("Authorization", token).send(&proxied.address);
    if response.is_stream() { response.message().unwrap() } else { response.json() }
}

#[test]
fn a_parked_call_is_for_its_client_its_call_and_once() {
    let server = Server::of_revision("streamable-http", "2025-11-25");
    let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
    let asked = call(&proxied, "Bearer a", &json!({"name": "elicitation", "arguments": {"message": "who?"}}));
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((&question["method"], &question["params"]["message"]), (&json!("elicitation/create"), &json!("who?")));

    let again = |message: &str, state: &Value| {
        json!({
            "name": "elicitation", "arguments": {"message": message}, "requestState": state,
            "inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}},
        })
    };
    let state = &asked["requestState"];
    let code = |token: &str, params: Value| call(&proxied, token, &params)["error"]["code"].clone();
    assert_eq!(code("Bearer b", again("who?", state)), -32602, "another client");
    assert_eq!(code("Bearer a", again("whom?", state)), -32602, "another call");
    assert_eq!(code("Bearer a", again("who?", &json!("x"))), -32602, "another state");
    // Without an answer it is asked again, under another state.
    let mut unanswered = again("who?", state);
    unanswered["inputResponses"] = json!({"other": {}});
    let asked = call(&proxied, "Bearer a", &unanswered);
    assert_eq!(asked["result"]["inputRequests"], json!({key: question}));
    assert_eq!(code("Bearer a", again("who?", state)), -32602, "the first state was used");
    let state = &asked["result"]["requestState"];
    let done = call(&proxied, "Bearer a", &again("who?", state));
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!", "{done}");
    assert_eq!(code("Bearer a", again("who?", state)), -32602, "it was used");
}
