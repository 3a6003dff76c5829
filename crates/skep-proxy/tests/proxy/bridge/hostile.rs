//! What nobody should send gets a clear answer, and never reaches the server.

use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::{Setup, limits};
use crate::http::{PATIENCE, Request, Response, call, initialize, modern, request};

async fn code(mut response: Response) -> (u16, i64) {
    let status = response.status;
    (status, response.json().await["error"]["code"].as_i64().unwrap())
}

fn raw(body: impl Into<bytes::Bytes>) -> Request {
    Request::post(&Value::Null).body(body)
}

/// The next thing that the server gets is what comes next.
async fn nothing_has_reached(setup: &Setup, server: &mut super::server::Server) {
    let (_, ()) = tokio::join!(setup.send(Request::post(&call(1, "next")).plain()), async {
        let message = server.expect("tools/call").await;
        assert_eq!(message["params"]["name"], "next");
        server.answer(&message, &json!({})).await;
    });
}

#[tokio::test]
async fn trap_26_a_body_that_is_too_large_is_refused_with_and_without_a_length() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let large = " ".repeat(9 << 20);
    let mut response = setup.send(raw(large)).await;
    assert_eq!((response.status, response.text().await.trim_end()), (413, "Request Entity Too Large"));
    // Chunks, without saying how many.
    let stream = TcpStream::connect(&setup.address).await.unwrap();
    let (mut input, mut output) = stream.into_split();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        setup.address
    );
    let sending = tokio::spawn(async move {
        output.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
        // The proxy stops reading when it has seen enough.
        while output.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    let mut answer = [0; 12];
    input.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    sending.abort();
    nothing_has_reached(&setup, &mut server).await;
}

#[tokio::test]
async fn types_verbs_and_paths_are_checked() {
    let mut setup = Setup::streamable().await;
    let (_server, session) = setup.begin().await;
    let status = async |request: Request| setup.send(request).await.status;
    let list = request(1, "tools/list", &json!({}));
    assert_eq!(status(Request::post(&list).instead("Content-Type", "text/plain")).await, 415);
    assert_eq!(status(Request::post(&list).instead("Content-Type", "application/jsonx")).await, 415);
    // What is compressed is not even looked at, so that nobody is told of letters that are none.
    let packed = Request::post(&list).header("Content-Encoding", "gzip").body(vec![0x1f, 0x8b, 8, 0, 0xff]);
    let mut refused = setup.send(packed).await;
    assert_eq!(refused.status, 415);
    assert!(refused.text().await.contains("Content-Encoding must be identity"));
    assert_eq!(status(Request::post(&list).header("Content-Encoding", "identity")).await, 200);
    assert_eq!(status(Request::post(&list).instead("Accept", "image/png")).await, 406);
    assert_eq!(status(Request::new("GET", "/mcp").header("Accept", "application/json")).await, 405);
    let named = Request::new("GET", "/mcp").header("Accept", "application/json").in_session(&session);
    assert_eq!(status(named).await, 406);
    // What wants no answer has to be about something.
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for message in [&note, &reply] {
        assert_eq!(code(setup.send(Request::post(message)).await).await, (400, -32600));
        assert_eq!(status(Request::post(message).in_session(&session)).await, 202);
    }
    for method in ["PUT", "PATCH", "HEAD"] {
        assert_eq!(status(Request::new(method, "/mcp")).await, 405, "{method}");
    }
    for path in ["/", "/sse", "/messages", "/mcp/", "/mcpx", "//mcp"] {
        assert_eq!(status(Request::new("GET", path)).await, 404, "{path}");
    }
    let mut metrics = setup.send(Request::new("GET", "/metrics")).await;
    assert_eq!((metrics.status, metrics.header("x-content-type-options")), (404, Some("nosniff")));
    assert!(!metrics.text().await.bytes().any(|byte| byte.is_ascii_digit()));
    let mut unknown = setup.send(Request::new("GET", "/.well-known/oauth-authorization-server")).await;
    assert_eq!((unknown.status, unknown.json().await), (404, json!({"error": "not_found"})));
    assert_eq!(status(Request::new("POST", "/health")).await, 405);
    let health = setup.send(Request::new("GET", "/health")).await.json().await;
    assert_eq!((&health["transport"], health.get("mcp")), (&json!("streamable-http"), None));
    for method in ["GET", "DELETE"] {
        let refused = setup.send(Request::new(method, "/mcp").header("MCP-Protocol-Version", "2026-07-28")).await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, OPTIONS")));
    }
}

#[tokio::test]
async fn trap_32_web_pages_from_elsewhere_are_refused() {
    let setup = Setup::streamable().await;
    let health = |request: Request| setup.send(request);
    for origin in ["http://evil.example", "null", "http://user@localhost", "http://localhost:1"] {
        let mut refused = health(Request::post(&initialize("2025-11-25")).header("Origin", origin)).await;
        assert_eq!(refused.status, 403, "{origin}");
        assert_eq!(refused.text().await, r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Origin not allowed"}}"#);
    }
    let own = format!("http://{}", setup.address);
    let twice = Request::listen("x").header("Origin", &own).header("Origin", &own);
    assert_eq!(health(twice).await.status, 403);
    assert_eq!(health(Request::listen("x").header("Origin", &own.to_uppercase())).await.status, 404);
    assert_eq!(health(Request::listen("x").header("Host", "evil.example")).await.status, 403);
}

#[tokio::test]
async fn trap_28_requests_that_are_classified_wrongly_never_reach_the_server() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let good = || modern(5, "tools/call", json!({"name": "a"}));
    for (request, expected) in [
        (good().instead("MCP-Protocol-Version", "2025-11-25"), (400, -32020)),
        (good().instead("MCP-Protocol-Version", "2099-01-01"), (400, -32020)),
        (good().instead("Mcp-Method", "tools/list"), (400, -32020)),
        (good().instead("Mcp-Name", "b"), (400, -32020)),
        (good().instead("Mcp-Name", "=?base64?!?="), (400, -32020)),
        (good().header("Mcp-Name", "a"), (400, -32020)),
        (good().header("Mcp-Method", "tools/call"), (400, -32020)),
        (modern(5, "ping", json!({})), (404, -32601)),
        (modern(5, "initialize", json!({})), (404, -32601)),
        (modern(5, "resources/subscribe", json!({})), (404, -32601)),
        (Request::post(&call(5, "a")).header("MCP-Protocol-Version", "2026-07-28"), (400, -32602)),
        (Request::post(&call(5, "a")).header("MCP-Protocol-Version", "v999").in_session(&session), (400, -32022)),
        (Request::post(&request(5, "server/discover", &json!({}))), (400, -32602)),
    ] {
        let mut response = setup.send(request.clone()).await;
        let status = response.status;
        let answer = response.json().await;
        assert_eq!((status, answer["error"]["code"].as_i64().unwrap()), expected, "{request:?}");
        assert_eq!(answer["id"], 5);
        if expected.1 == -32022 {
            let supported = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
            assert_eq!(answer["error"]["data"], json!({"supported": supported, "requested": "v999"}));
        }
    }
    let forged = json!({"jsonrpc": "2.0", "id": 5, "result": {}});
    assert_eq!(
        code(setup.send(Request::post(&forged).header("MCP-Protocol-Version", "2026-07-28")).await).await,
        (400, -32600)
    );
    nothing_has_reached(&setup, &mut server).await;
    // What the server itself refuses keeps the status of its kind.
    setup.speak_modern(&mut server).await;
    let (refused, ()) = tokio::join!(setup.send(modern(6, "future/thing", json!({}))), async {
        let message = server.expect("future/thing").await;
        let error = json!({"code": -32601, "message": "no"});
        server.write(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).await;
    });
    assert_eq!(code(refused).await, (404, -32601));
}

#[tokio::test]
async fn trap_27_whoever_is_slow_to_ask_is_cut_off_and_whoever_listens_is_not() {
    let slow = Duration::from_secs(5);
    let mut setup = Setup::with_limits(Limits { head: slow, upload: slow, ..limits() }).await;
    let (mut server, session) = setup.begin().await;
    let mut stream = setup.send(Request::listen(&session)).await;
    let mut silent = TcpStream::connect(&setup.address).await.unwrap();
    silent.write_all(b"POST /mcp HT").await.unwrap();
    let mut uploading = TcpStream::connect(&setup.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{",
        setup.address
    );
    uploading.write_all(head.as_bytes()).await.unwrap();
    let mut told = String::new();
    tokio::time::timeout(PATIENCE, uploading.read_to_string(&mut told)).await.unwrap().unwrap();
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    let mut nothing = Vec::new();
    tokio::time::timeout(PATIENCE, silent.read_to_end(&mut nothing)).await.unwrap().unwrap();
    assert_eq!(nothing, b"");
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    assert!(stream.message().await.is_some());
}

#[tokio::test]
async fn arguments_that_headers_repeat_are_checked_because_the_server_cannot() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let schema = json!({"type": "object", "properties": {"yard": {"type": "string", "x-mcp-header": "Yard"}}});
    let (_, ()) = tokio::join!(setup.send(modern(1, "tools/list", json!({}))), async {
        let message = server.expect("tools/list").await;
        server.answer(&message, &json!({"tools": [{"name": "weigh", "inputSchema": schema}]})).await;
    });
    let weigh = || modern(2, "tools/call", json!({"name": "weigh", "arguments": {"yard": "north"}}));
    for wrong in [weigh(), weigh().header("Mcp-Param-Yard", "south"), weigh().header("Mcp-Param-Yard", "=?base64?!?=")]
    {
        assert_eq!(code(setup.send(wrong).await).await, (400, -32020));
    }
    let (good, ()) = tokio::join!(setup.send(weigh().header("Mcp-Param-Yard", "north")), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(good.status, 200);
}
