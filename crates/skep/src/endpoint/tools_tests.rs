use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;

use super::*;

/// Asks a server that answers each message as `answer` says.
async fn asked(answer: fn(&str, &HeaderMap, &Value) -> Response) -> Result<Vec<String>, Silence> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().fallback(async move |request: Request| {
        let (head, body) = request.into_parts();
        let bytes = axum::body::to_bytes(body, 1_000_000).await.unwrap();
        let message = serde_json::from_slice(&bytes).unwrap_or_default();
        answer(head.method.as_str(), &head.headers, &message)
    });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let tools = tools(&url, None).await;
    server.abort();
    tools
}

fn json_answer(text: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], text.to_string()).into_response()
}

#[tokio::test]
async fn a_server_with_sessions_and_pages() {
    let tools = asked(|verb, headers, message| {
        let id = &message["id"];
        let in_session = headers.get(SESSION).is_some_and(|session| session == "s1")
            && headers.get("mcp-protocol-version").is_some_and(|revision| revision == "2025-03-26");
        match (verb, message["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let result = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}});
                let mut answer = json_answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                answer.headers_mut().insert(SESSION, "s1".parse().unwrap());
                answer
            }
            ("DELETE", _) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            _ if !in_session => StatusCode::BAD_REQUEST.into_response(),
            (_, Some("notifications/initialized")) => StatusCode::ACCEPTED.into_response(),
            (_, Some("tools/list")) if message["params"]["cursor"] == "next" => {
                // A stream that says something else first, and is never closed.
                let noise = "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/message\"}\n\n".to_owned();
                let page = json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "two"}]}});
                let events = [noise, format!("data: {page}\n\n")].map(Ok::<_, std::io::Error>);
                let stream = futures::stream::iter(events).chain(futures::stream::pending());
                ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
            }
            (_, Some("tools/list")) => {
                let result = json!({"tools": [{"name": "one"}], "nextCursor": "next"});
                json_answer(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    });
    assert_eq!(tools.await.unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn a_server_without_a_handshake() {
    let tools = asked(|_, headers, message| {
        let says = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
        let meta = &message["params"]["_meta"];
        let good = says("mcp-protocol-version", WITHOUT_HANDSHAKE)
            && says("mcp-method", "tools/list")
            && meta["io.modelcontextprotocol/protocolVersion"] == WITHOUT_HANDSHAKE
            && meta["io.modelcontextprotocol/clientCapabilities"].is_object();
        if !good {
            return StatusCode::BAD_REQUEST.into_response();
        }
        json_answer(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [{"name": "new"}]}}))
    });
    assert_eq!(tools.await.unwrap(), ["new"]);
}

#[tokio::test]
async fn a_session_is_ended_whatever_becomes_of_it() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    fn end(headers: &HeaderMap) -> Response {
        let is_its_own = headers.get(SESSION).is_some_and(|session| session == "s1")
            && headers.get("mcp-protocol-version").is_some_and(|revision| revision == WITH_HANDSHAKE);
        ENDED.fetch_add(usize::from(is_its_own), Ordering::Relaxed);
        StatusCode::NO_CONTENT.into_response()
    }
    let late = asked(|verb, headers, message| match (verb, message["method"].as_str()) {
        ("DELETE", _) => end(headers),
        (_, Some("initialize")) => {
            let result = json!({"protocolVersion": WITH_HANDSHAKE});
            let answer = json_answer(&json!({"jsonrpc": "2.0", "id": 0, "result": result}));
            ([(SESSION, "s1")], answer).into_response()
        }
        (_, Some("tools/list")) => {
            let never = futures::stream::pending::<Result<String, std::io::Error>>();
            ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(never)).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    });
    assert_eq!(late.await, Err(Silence::Late));
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    let unclear = asked(|verb, headers, message| match (verb, message["method"].as_str()) {
        ("DELETE", _) => end(headers),
        (_, Some("initialize")) => ([(SESSION, "s1")], "<html>").into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    });
    assert_eq!(unclear.await, Err(Silence::Refused(StatusCode::BAD_REQUEST)));
    assert_eq!(ENDED.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn something_else_does_not_tell() {
    assert_eq!(asked(|_, _, _| "<html>".into_response()).await, Err(Silence::Unclear));
    let refused = Err(Silence::Refused(StatusCode::UNAUTHORIZED));
    assert_eq!(asked(|_, _, _| StatusCode::UNAUTHORIZED.into_response()).await, refused);
    let error = asked(|_, _, message| {
        json_answer(&json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}))
    });
    assert_eq!(error.await, Err(Silence::Error("no".to_owned())));
    let nobody = "127.0.0.1:1";
    let unreachable = Err(Silence::Unreachable(nobody.to_owned()));
    assert_eq!(tools(&format!("http://{nobody}/mcp"), None).await, unreachable);
}
