//! Servers that stop answering.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use skep_proxy::transparent::{Dialect, Probing, Target, Transparent};
use skep_proxy::{Forwarded, Limits, ServeError};

use super::server::{Before, Server, reply};
use crate::eras::stands_alone;
use crate::http::{PATIENCE, Request, call, initialize, modern};

/// A proxy that asks often.
async fn before(server: &Server) -> Before {
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let soon = Duration::from_millis(20);
    let probing = Probing { interval: soon, retry: soon, failures: 3, ..Probing::default() };
    Before::with(transparent.with_probing(Some(probing))).await
}

#[tokio::test]
async fn trap_59_and_60_a_server_is_asked_once_it_has_served_and_given_up_when_it_fails() {
    let (status, probes) = (Arc::new(AtomicU16::new(404)), Arc::new(AtomicUsize::new(0)));
    let (answered, counted) = (Arc::clone(&status), Arc::clone(&probes));
    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" => {
            counted.fetch_add(1, Ordering::Relaxed);
            reply(answered.load(Ordering::Relaxed), &[], "")
        }
        "OPTIONS" => reply(204, &[], ""),
        _ => reply(200, &[("content-type", "application/json")], "{}"),
    })
    .await;
    let mut before = before(&server).await;
    let health = before.send(Request::new("GET", "/health")).await.json().await;
    assert_eq!((&health["status"], &health["mcp"]["available"]), (&json!("healthy"), &json!(true)));
    assert!(health["mcp"]["response_time_ms"].is_u64());
    assert_eq!(probes.load(Ordering::Relaxed), 1, "only somebody else's question made us ask");
    // That the server answers something is not enough.
    assert_eq!(before.send(Request::post(&call(1, "a"))).await.status, 200);
    assert_eq!(before.send(Request::new("OPTIONS", "/mcp")).await.status, 204);
    assert_eq!(probes.load(Ordering::Relaxed), 1);
    assert_eq!(before.send(Request::post(&initialize("2025-11-25"))).await.status, 200);
    let asked = async {
        while probes.load(Ordering::Relaxed) < 10 {
            tokio::task::yield_now().await;
        }
    };
    // A server that knows no such path is alive.
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    assert!(!before.serving.is_finished());
    status.store(500, Ordering::Relaxed);
    let ended = tokio::time::timeout(PATIENCE, &mut before.serving).await.unwrap().unwrap();
    assert!(matches!(ended, Err(ServeError::ServerLost)));
    assert!(tokio::net::TcpStream::connect(&before.address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn trap_60_a_server_without_handshakes_is_asked_too_in_words_that_it_knows() {
    for is_stateless in [false, true] {
        let server = Server::start(stands_alone).await;
        let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
        let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
        let soon = Duration::from_millis(20);
        let probing = Probing { interval: soon, retry: soon, failures: 3, ..Probing::default() };
        let transparent = transparent.with_probing(Some(probing));
        let before = Before::with(if is_stateless { transparent.stateless() } else { transparent }).await;
        server.seen();
        assert_eq!(before.send(modern(1, "tools/list", json!({}))).await.status, 200);
        let is_probe = |seen: &super::server::Seen| {
            seen.target == "/"
                && if is_stateless { seen.json()["method"] == "server/discover" } else { seen.method == "GET" }
        };
        let asked = async {
            while !server.seen().iter().any(is_probe) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
        assert!(!before.serving.is_finished());
    }
}

#[tokio::test]
async fn trap_60_a_server_on_http_and_sse_is_asked_once_a_session_is_announced() {
    let probes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&probes);
    let server = Server::start(move |seen| match (seen.method.as_str(), seen.target.as_str()) {
        ("GET", "/") => {
            counted.fetch_add(1, Ordering::Relaxed);
            reply(404, &[], "")
        }
        ("GET", "/none") => reply(200, &[("content-type", "text/event-stream")], "event: endpoint\ndata: /message\n\n"),
        ("GET", _) => {
            reply(200, &[("content-type", "text/event-stream")], "event: endpoint\ndata: /message?sessionId=4f1c-9\n\n")
        }
        _ => reply(204, &[], ""),
    })
    .await;
    let target = Target::local(Dialect::Sse, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let soon = Duration::from_millis(20);
    let before = Before::with(transparent.with_probing(Some(Probing { interval: soon, ..Probing::default() }))).await;
    before.send(Request::new("GET", "/none")).await.text().await;
    assert_eq!(probes.load(Ordering::Relaxed), 0);
    let told = before.send(Request::new("GET", "/sse")).await.text().await;
    assert_eq!(told, "event: endpoint\ndata: /message?sessionId=4f1c-9\n\n");
    let asked = async {
        while probes.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
}
