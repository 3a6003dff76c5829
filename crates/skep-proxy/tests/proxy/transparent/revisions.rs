//! Clients and servers of sessions that know one revision each.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::server::{Before, Reply, Seen, Server, reply};
use crate::http::{Request, initialize, request};

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

/// What a tool answers that knows all words.
fn content() -> Value {
    json!({"content": [
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "name": "n", "uri": "u:1"},
    ]})
}

/// A server that speaks one revision, and answers as a stream or as JSON.
fn of_revision(revision: &'static str, is_stream: bool, has_sessions: bool) -> impl Fn(&Seen) -> Reply + Send + Sync {
    move |seen| {
        let message = seen.json();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s"}}),
            Some("tools/call") => content(),
            Some(_) if message.get("id").is_some() => json!({}),
            _ => return reply(if seen.method == "POST" { 202 } else { 204 }, &[], ""),
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let mut headers = vec![if is_stream { EVENTS } else { JSON }];
        if message["method"] == "initialize" && has_sessions {
            headers.push(("mcp-session-id", "s"));
        }
        let body = if is_stream {
            format!("id: 0\ndata: \n\nid: 1\nevent: message\ndata: {answer}\n\n: more\n\n")
        } else {
            answer.to_string()
        };
        reply(200, &headers, body)
    }
}

/// The answer to a message, however it comes.
async fn answer(before: &Before, post: Request) -> Value {
    let mut response = before.send(post).await;
    assert_eq!(response.status, 200);
    if response.header("content-type") == Some(EVENTS.1) {
        response.message().await.unwrap()
    } else {
        response.json().await
    }
}

fn kinds(result: &Value) -> Vec<&str> {
    result["result"]["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_side_is_told_its_own_revision() {
    for is_stream in [false, true] {
        for (client, expected) in [
            ("2024-10-07", ["resource", "text"]),
            ("2024-11-05", ["resource", "text"]),
            ("2025-03-26", ["audio", "text"]),
            ("2025-06-18", ["audio", "resource_link"]),
        ] {
            let server = Server::start(of_revision("2025-11-25", is_stream, true)).await;
            let before = Before::local(Dialect::Streamable, &server.address).await;
            let told = answer(&before, Request::post(&initialize(client))).await;
            assert_eq!(told["result"]["protocolVersion"], client, "streams: {is_stream}");
            server.seen();
            let call = request(1, "tools/call", &json!({"name": "t"}));
            let mut call = Request::post(&call).in_session("s");
            if client == "2025-06-18" {
                call = call.header("MCP-Protocol-Version", client);
            }
            assert_eq!(kinds(&answer(&before, call).await), expected, "{client}, streams: {is_stream}");
            let seen = server.seen();
            assert_eq!(seen[0].header("mcp-protocol-version"), Some("2025-11-25"), "{client}");
        }
    }
}

#[tokio::test]
async fn where_both_speak_the_same_revision_nothing_is_touched() {
    let odd = "{\"jsonrpc\" : \"2.0\",\"id\":\"init\",\"result\":{ \"protocolVersion\":\"2024-11-05\"}}\n";
    let server = Server::start(move |seen| match seen.json()["method"].as_str() {
        Some("initialize") => reply(200, &[JSON, ("mcp-session-id", "s")], odd),
        _ => reply(200, &[JSON], format!("{{ \"result\": {} }}", content())),
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    assert_eq!(before.send(Request::post(&initialize("2024-11-05"))).await.text().await, odd);
    server.seen();
    let call = Request::post(&request(1, "tools/call", &json!({"name": "t"}))).in_session("s");
    let call = call.header("Accept-Encoding", "br");
    let passed = before.send(call).await.text().await;
    assert_eq!(passed, format!("{{ \"result\": {} }}", content()));
    let seen = server.seen();
    assert_eq!((seen[0].header("mcp-protocol-version"), seen[0].header("accept-encoding")), (None, Some("br")));
}

#[tokio::test]
async fn an_older_server_hears_only_words_that_it_knows() {
    let server = Server::start(of_revision("2025-03-26", false, true)).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let told = answer(&before, Request::post(&initialize("2025-11-25"))).await;
    assert_eq!(told["result"]["protocolVersion"], "2025-11-25");
    server.seen();
    let params = json!({"ref": {}, "argument": {}, "context": {"arguments": {}}});
    let complete = Request::post(&request(1, "completion/complete", &params)).in_session("s");
    answer(&before, complete.header("MCP-Protocol-Version", "2025-11-25")).await;
    let seen = server.seen();
    assert_eq!(seen[0].header("mcp-protocol-version"), None);
    assert_eq!(seen[0].json()["params"], json!({"ref": {}, "argument": {}}));
    // What its revision does not have is refused, whatever the server would do.
    let batch = Request::post(&json!([request(1, "ping", &json!({}))])).in_session("s");
    assert_eq!(before.send(batch).await.status, 400);
}

#[tokio::test]
async fn clients_without_sessions_are_known_by_the_revision_that_they_name() {
    let server = Server::start(of_revision("2025-11-25", false, false)).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let told = answer(&before, Request::post(&initialize("2025-06-18"))).await;
    assert_eq!(told["result"]["protocolVersion"], "2025-06-18");
    server.seen();
    for (named, expected) in [("2025-06-18", "2025-11-25"), ("2025-11-25", "2025-11-25"), ("2025-03-26", "2025-03-26")]
    {
        let call = Request::post(&request(1, "tools/call", &json!({"name": "t"})));
        answer(&before, call.header("MCP-Protocol-Version", named)).await;
        assert_eq!(server.seen()[0].header("mcp-protocol-version"), Some(expected), "{named}");
    }
}

#[tokio::test]
async fn a_revision_that_nobody_knows_is_the_servers_to_answer() {
    let server = Server::start(of_revision("2025-06-18", false, true)).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    for asked in ["1999-01-01", "2026-07-28"] {
        let told = answer(&before, Request::post(&initialize(asked))).await;
        assert_eq!(told["result"]["protocolVersion"], "2025-06-18", "{asked}");
    }
}
