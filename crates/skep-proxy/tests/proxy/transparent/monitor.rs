//! Servers that stop answering.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use skep_proxy::transparent::{Dialect, Probing, Target, Transparent};
use skep_proxy::{Forwarded, Limits, ServeError};

use super::server::{Before, Server, reply};
use crate::http::{PATIENCE, Request, call};

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
    assert_eq!(before.send(Request::post(&call(1, "a"))).await.status, 200);
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
