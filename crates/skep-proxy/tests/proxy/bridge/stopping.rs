//! Proxies that stop while clients hear from the server: streams whose end nobody awaits end at once, and calls finish.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skep_proxy::Forwarded;

use super::server::Setup;
use super::sse;
use crate::http::{PATIENCE, Response, call, initialize, modern, request};

/// Much less than a proxy has patience with calls.
const AT_ONCE: Duration = Duration::from_secs(5);

impl Setup {
    /// Waits until the proxy has stopped.
    async fn stopped(&mut self) {
        tokio::time::timeout(PATIENCE, &mut self.listener).await.unwrap().unwrap().unwrap();
        tokio::time::timeout(PATIENCE, &mut self.link).await.unwrap().unwrap().unwrap();
    }
}

fn listen() -> crate::http::Request {
    modern("l", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

/// The stream of a listener ends, and with the answer to its request.
async fn ends(mut stream: Response) {
    let tag = json!({"io.modelcontextprotocol/subscriptionId": "l"});
    let result = json!({"resultType": "complete", "_meta": tag});
    assert_eq!(stream.message().await.unwrap(), json!({"jsonrpc": "2.0", "id": "l", "result": result}));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn whoever_listens_to_a_process_does_not_keep_the_proxy() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    setup.speak_modern(&mut server).await;
    let (mut stream, asked) = tokio::join!(setup.send(listen()), async {
        let asked = server.expect("subscriptions/listen").await;
        let tag = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": tag});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
        server.write(&told).await;
        asked
    });
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let begun = Instant::now();
    setup.stop.cancel();
    ends(stream).await;
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], asked["id"]);
    setup.stopped().await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn whoever_listens_to_a_process_of_sessions_does_not_keep_the_proxy() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let (mut stream, ()) = tokio::join!(setup.send(listen()), async {
        let asked = server.expect("server/discover").await;
        let error = json!({"code": -32601, "message": "Method not found"});
        server.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    });
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let begun = Instant::now();
    setup.stop.cancel();
    ends(stream).await;
    setup.stopped().await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stream_of_events_ends_at_once_or_after_the_answers_that_it_owes() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, mut asking, path) = sse::begin(&mut setup).await;
    let (mut idle, _) = sse::open(&setup).await;
    assert_eq!(sse::post(&setup, &path, &call(1, "slow")).await.status, 202);
    let asked: Value = server.expect("tools/call").await;
    let begun = Instant::now();
    setup.stop.cancel();
    assert_eq!(idle.event().await, None);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    server.answer(&asked, &json!({"done": true})).await;
    assert_eq!(asking.message().await.unwrap()["result"], json!({"done": true}));
    assert_eq!(asking.message().await, None);
    setup.stopped().await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_client_that_left_while_its_handshake_was_made_is_forgotten() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let mut server = setup.server().await;
    let (stream, path) = sse::open(&setup).await;
    assert_eq!(sse::post(&setup, &path, &initialize("2024-11-05")).await.status, 202);
    let asked = server.expect("initialize").await;
    let error = json!({"code": -32601, "message": "Method not found"});
    server.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    let discovered = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}});
    let asked = server.expect("server/discover").await;
    server.answer(&asked, &discovered).await;
    // What it can do is asked for the client, which does not wait for that.
    let asked = server.expect("server/discover").await;
    drop(stream);
    let ping = request(2, "ping", &json!({}));
    let left = async { while sse::post(&setup, &path, &ping).await.status != 404 {} };
    tokio::time::timeout(PATIENCE, left).await.unwrap();
    let begun = Instant::now();
    setup.stop.cancel();
    server.answer(&asked, &discovered).await;
    while let Some(message) = tokio::time::timeout(PATIENCE, server.next()).await.unwrap() {
        assert_ne!(message["method"], "subscriptions/listen", "nobody is there who could be told of changes");
    }
    setup.stopped().await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}
