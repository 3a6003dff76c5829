//! What streamable HTTP demands beyond the messages: sessions, streams that are resumed, headers, limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Request, Response};
use crate::peer::{STATELESS, stateless_headers};
use crate::process::Server;

const REVISION: &str = "2025-11-25";

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn initialize() -> Request {
    let client = json!({"name": "test", "version": "1"});
    Request::post(&request(
        "initialize",
        &json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}),
    ))
}

fn session(server: &Server) -> String {
    let response = initialize().send(&server.address);
    assert_eq!(response.status, 200);
    response.header("mcp-session-id").unwrap().to_owned()
}

fn in_session(session: &str, message: &Value) -> Request {
    Request::post(message).header("Mcp-Session-Id", session).header("MCP-Protocol-Version", REVISION)
}

fn get(session: &str) -> Request {
    Request::new("GET", "/mcp").header("Accept", "text/event-stream").header("Mcp-Session-Id", session)
}

fn code(response: &mut Response) -> (u16, i64) {
    (response.status, response.json()["error"]["code"].as_i64().unwrap())
}

fn call(name: &str, arguments: &Value) -> Value {
    request("tools/call", &json!({"name": name, "arguments": arguments}))
}

#[test]
fn sessions_begin_with_the_handshake_and_end_with_delete() {
    let server = Server::start("streamable-http");
    let list = request("tools/list", &json!({}));
    assert_eq!(code(&mut Request::post(&list).send(&server.address)), (400, -32000));
    assert_eq!(code(&mut in_session("guessed", &list).send(&server.address)), (404, -32001));
    let session = session(&server);
    assert!(session.len() >= 32 && session.bytes().all(|byte| byte.is_ascii_graphic()));
    assert_eq!(in_session(&session, &list).send(&server.address).status, 200);
    let unknown = in_session(&session, &list).instead("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(unknown.send(&server.address).status, 400);

    let delete = Request::new("DELETE", "/mcp");
    assert_eq!(delete.send(&server.address).status, 400);
    let delete = delete.header("Mcp-Session-Id", &session);
    let mut stream = get(&session).send(&server.address);
    assert_eq!(delete.send(&server.address).status, 204);
    assert!(stream.event().is_none(), "the stream of a session ends with it");
    assert_eq!(delete.send(&server.address).status, 404);
    assert_eq!(code(&mut in_session(&session, &list).send(&server.address)), (404, -32001));
    assert_eq!(get(&session).send(&server.address).status, 404);
}

#[test]
fn a_stream_that_is_lost_is_resumed_where_it_broke() {
    let server = Server::start("streamable-http");
    let session = session(&server);
    let arguments = json!({"steps": 4, "milliseconds": 100});
    let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": 1}});
    let mut stream = in_session(&session, &request("tools/call", &params)).send(&server.address);
    let primer = stream.event().unwrap();
    assert_eq!(primer.data.as_deref(), Some(""));
    let first = stream.event().unwrap();
    drop(stream);
    // The call goes on without the client, and what it says is kept.
    std::thread::sleep(Duration::from_millis(600));
    let resume = |id: &str| get(&session).header("Last-Event-ID", id).send(&server.address);
    let read_all = |mut stream: Response| std::iter::from_fn(move || stream.message()).collect::<Vec<Value>>();
    let rest = read_all(resume(&first.id.unwrap()));
    assert_eq!(rest.len(), 4, "{rest:?}");
    assert_eq!(rest[3]["result"]["content"][0]["text"], "done in 4 steps");
    assert_eq!(read_all(resume(&primer.id.unwrap())).len(), 5);
    for unknown in ["999-1", "nonsense", "0-999"] {
        assert_eq!(read_all(resume(unknown)), Vec::<Value>::new(), "{unknown}");
    }
    let other = self::session(&server);
    let stolen = get(&other).header("Last-Event-ID", "1-0").send(&server.address);
    assert_eq!(read_all(stolen), Vec::<Value>::new(), "streams belong to their session");
}

#[test]
fn a_server_may_hang_up_and_the_client_comes_back() {
    let server = Server::start("streamable-http");
    let session = session(&server);
    let mut stream = in_session(&session, &call("test_reconnection", &json!({}))).send(&server.address);
    let events: Vec<_> = std::iter::from_fn(|| stream.event()).collect();
    let last = events.last().unwrap();
    assert_eq!((last.retry, last.data.as_deref()), (Some(500), Some("")));
    let mut resumed = get(&session).header("Last-Event-ID", last.id.as_ref().unwrap()).send(&server.address);
    assert_eq!(resumed.message().unwrap()["id"], 7);
}

#[test]
fn bodies_and_headers_are_checked_before_anything_else() {
    let server = Server::start("streamable-http");
    let send = |request: Request| request.send(&server.address).status;
    assert_eq!(send(initialize().instead("Content-Type", "text/plain")), 415);
    assert_eq!(send(initialize().instead("Accept", "application/json")), 406);
    assert_eq!(send(initialize().instead("Accept", "*/*")), 200);
    assert_eq!(send(initialize().body(&" ".repeat(5 << 20))), 413);
    assert_eq!(code(&mut initialize().body("{").send(&server.address)), (400, -32700));
    assert_eq!(code(&mut initialize().body("[]").send(&server.address)), (400, -32000));
    assert_eq!(code(&mut initialize().body("{\"jsonrpc\":\"2.0\"}").send(&server.address)), (400, -32600));
    assert_eq!(send(initialize().instead("Host", "evil.example")), 403);
    assert_eq!(send(initialize().header("Origin", "http://evil.example")), 403);
    assert_eq!(send(initialize().header("Origin", "http://localhost:3000")), 200);
    assert_eq!(send(get(&session(&server)).instead("Accept", "application/json")), 406);
    assert_eq!(send(Request::new("PUT", "/mcp")), 405);
}

#[test]
fn the_headers_of_a_request_that_stands_alone_say_what_its_body_says() {
    let server = Server::start("streamable-http");
    let meta = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    let tool = |version: &str| {
        let arguments = json!({"region": "Zürich", "priority": 3});
        request("tools/call", &json!({"name": "test_custom_headers", "arguments": arguments, "_meta": meta(version)}))
    };
    let good = || {
        stateless_headers(Request::post(&tool(STATELESS)), &tool(STATELESS), STATELESS)
            .header("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")
            .header("mcp-param-priority", " 3 ")
    };
    let mut answer = good().header("Mcp-Session-Id", "ignored").send(&server.address);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(answer.json()["result"]["content"][0]["text"], "region: Zürich");
    for (name, value) in [
        ("MCP-Protocol-Version", REVISION),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "echo"),
        ("Mcp-Param-Region", "Bern"),
        ("Mcp-Param-Region", "=?base64?WsO8cmljaA?=x"),
        ("Mcp-Param-Region", "=?base64?!?="),
        ("Mcp-Param-Priority", "4"),
        ("Mcp-Param-Verbose", "true"),
    ] {
        assert_eq!(code(&mut good().instead(name, value).send(&server.address)), (400, -32020), "{name}: {value}");
    }
    for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        assert_eq!(code(&mut good().header(name, "again").send(&server.address)), (400, -32020), "{name} twice");
    }
    let future = stateless_headers(Request::post(&tool("2031-01-01")), &tool("2031-01-01"), "2031-01-01");
    let mut refused = future.send(&server.address);
    assert_eq!(refused.status, 400);
    let error = refused.json()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!("2031-01-01")));

    let version = |request: Request| request.header("MCP-Protocol-Version", STATELESS).send(&server.address);
    assert_eq!(version(Request::new("GET", "/mcp").header("Accept", "text/event-stream")).status, 405);
    assert_eq!(version(Request::new("DELETE", "/mcp")).status, 405);
    assert_eq!(version(Request::post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).status, 400);
    assert_eq!(version(Request::post(&json!({"jsonrpc": "2.0", "method": "notifications/x"}))).status, 202);
    assert_eq!(code(&mut version(Request::post(&request("tools/list", &json!({}))))), (400, -32602));
}

#[test]
fn memory_stays_flat_when_clients_never_say_goodbye() {
    let server = Server::start("streamable-http");
    let visit = || {
        let session = session(&server);
        let arguments = json!({"bytes": 20_000});
        assert!(in_session(&session, &call("big", &arguments)).send(&server.address).message().is_some());
        session
    };
    let first = visit();
    // More than the server keeps, twice: after the first round the sessions are as many as they will ever be.
    let round = || (0..600).for_each(|_| drop(visit()));
    round();
    let before = server.memory();
    round();
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");
    assert_eq!(get(&first).send(&server.address).status, 404, "the session that was idle the longest has ended");
}

#[test]
fn it_stops_at_once_while_streams_are_open() {
    let mut server = Server::start("streamable-http");
    let session = session(&server);
    let mut background = get(&session).send(&server.address);
    let slow = json!({"name": "slow", "arguments": {"seconds": 600}, "_meta": {"progressToken": 1}});
    let mut running = in_session(&session, &request("tools/call", &slow)).send(&server.address);
    assert!(running.message().is_some());
    let listening = Instant::now();
    assert!(server.stop() < Duration::from_secs(5));
    assert!(background.event().is_none() && listening.elapsed() < Duration::from_secs(10));
}
