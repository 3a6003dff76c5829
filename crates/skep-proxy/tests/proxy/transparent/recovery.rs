//! Servers that are replaced while clients have sessions with them.

use serde_json::json;
use skep_proxy::transparent::Dialect;

use super::server::{Before, Server, reply, with_sessions};
use crate::http::{Request, call, initialize};

#[tokio::test]
async fn trap_18_a_session_outlives_its_server_more_than_once() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let first = before.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!(first.header("mcp-session-id"), Some("a-0"));
    for letter in ["b", "c"] {
        // It answers that it knows no such session.
        server.replace(with_sessions(letter));
        let mut answer = before.send(Request::post(&call(5, "x")).in_session("a-0")).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, Some("a-0")));
        assert_eq!(answer.json().await["result"]["session"], format!("{letter}-0"));
        let methods: Vec<_> = server.seen().iter().map(|seen| seen.json()["method"].clone()).collect();
        assert_eq!(methods, ["tools/call", "initialize", "notifications/initialized", "tools/call"]);
        let mut later = before.send(Request::post(&call(6, "x")).in_session("a-0")).await;
        assert_eq!(later.json().await["result"]["session"], format!("{letter}-0"));
    }
}

#[tokio::test]
async fn a_handshake_that_is_too_large_to_be_kept_is_not_made_again() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut large = initialize("2025-11-25");
    large["params"]["padding"] = "x".repeat(100 << 10).into();
    assert_eq!(before.send(Request::post(&large)).await.status, 200);
    server.replace(with_sessions("b"));
    assert_eq!(before.send(Request::post(&call(5, "x")).in_session("a-0")).await.status, 404);
    assert!(server.seen().iter().all(|seen| seen.json()["method"] != "initialize"));
}

#[tokio::test]
async fn many_requests_at_once_make_one_handshake() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    server.replace(with_sessions("b"));
    let requests = (0..20).map(|id| before.send(Request::post(&call(id, "x")).in_session("a-0")));
    for mut answer in futures::future::join_all(requests).await {
        assert_eq!(answer.json().await["result"]["session"], "b-0");
    }
    let handshakes = server.seen().iter().filter(|seen| seen.json()["method"] == "initialize").count();
    assert_eq!(handshakes, 1);
}

#[tokio::test]
async fn trap_19_a_server_that_is_not_there_is_told() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    server.end().await;
    assert_eq!(before.send(Request::post(&initialize("2025-11-25"))).await.status, 502);
    assert_eq!(before.send(Request::post(&call(1, "x")).in_session("a-0")).await.status, 502);
}

#[tokio::test]
async fn trap_19_a_handshake_is_made_once_and_the_next_one_finds_whoever_is_there() {
    let server = Server::start(with_sessions("a")).await;
    let address = server.address.clone();
    let before = Before::local(Dialect::Streamable, &address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    server.end().await;
    // It names the session that it had, and the server of that is gone.
    let again = || Request::post(&initialize("2025-11-25")).in_session("a-0");
    assert_eq!(before.send(again()).await.status, 502);
    let replaced = Server::start_at(&address, with_sessions("b")).await;
    let mut answer = before.send(again()).await;
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, Some("b-0")));
    answer.text().await;
    let seen: Vec<_> = replaced.seen().iter().map(|seen| seen.json()["method"].clone()).collect();
    assert_eq!(seen, ["initialize"]);
}

#[tokio::test]
async fn trap_20_the_end_of_a_session_is_never_recovered_from() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    server.replace(with_sessions("b"));
    assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session("a-0")).await.status, 404);
    let methods: Vec<_> = server.seen().iter().map(|seen| seen.method.clone()).collect();
    assert_eq!(methods, ["DELETE"]);
    assert_eq!(before.send(Request::post(&call(1, "x")).in_session("a-0")).await.status, 404);
    assert_eq!(server.seen().len(), 0, "the session has ended with it");
}

#[tokio::test]
async fn trap_22_only_a_handshake_is_made_again() {
    let server = Server::start(|seen| {
        let json = ("content-type", "application/json");
        match seen.header("mcp-session-id") {
            // A server that begins sessions when it likes.
            None => reply(200, &[json, ("mcp-session-id", "odd")], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Some(_) => reply(404, &[json], "{}"),
        }
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&call(1, "x"))).await;
    server.seen();
    assert_eq!(before.send(Request::post(&call(2, "x")).in_session("odd")).await.status, 404);
    let bodies: Vec<_> = server.seen().iter().map(|seen| seen.json()["id"].clone()).collect();
    assert_eq!(bodies, [json!(2)]);
}
