//! How long a connection may take, and for what.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use skep_proxy::stdio::Bridge;
use skep_proxy::transparent::Dialect;
use skep_proxy::{Limits, Proxy, Readiness, answer_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::bridge::server::{Setup, limits};
use crate::http::{PATIENCE, Request, call};

const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_hours(1);

/// Reads an answer that says how long it is.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let whole = async {
        loop {
            let text = String::from_utf8_lossy(&read).into_owned();
            if text.ends_with('}') {
                return text;
            }
            let mut more = [0; 4096];
            let length = stream.read(&mut more).await.unwrap();
            assert!(length > 0, "it ended with {text}");
            read.extend_from_slice(&more[..length]);
        }
    };
    tokio::time::timeout(PATIENCE, whole).await.unwrap()
}

#[tokio::test]
async fn the_head_of_a_later_request_has_no_more_time_than_that_of_the_first() {
    let setup = Setup::with_limits(Limits { head: SOON, idle: LATE, ..limits() }).await;
    let mut stream = TcpStream::connect(&setup.address).await.unwrap();
    let head = format!("GET /health HTTP/1.1\r\nHost: {}\r\n", setup.address);
    for _ in 0..2 {
        // Whoever asks nothing may take longer than that.
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        tokio::time::sleep(2 * SOON).await;
    }
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "it was never asked in full");
}

#[tokio::test]
async fn a_connection_on_which_nobody_asks_anything_ends_whatever_it_speaks() {
    let setup = Setup::with_limits(Limits { head: LATE, idle: SOON, ..limits() }).await;
    let mut stream = TcpStream::connect(&setup.address).await.unwrap();
    stream.write_all(format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", setup.address).as_bytes()).await.unwrap();
    answer(&mut stream).await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();

    let stream = TokioIo::new(TcpStream::connect(&setup.address).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get(format!("http://{}/health", setup.address)).body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap();
    // We would go on for ever.
    let _ = tokio::time::timeout(PATIENCE, connection).await.unwrap().unwrap();
    drop(sender);
}

#[tokio::test]
async fn whoever_comes_before_the_proxy_is_there_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (made, ready) = tokio::sync::oneshot::channel::<()>();
    let limits = limits();
    let waiting = answer_until(listener, Dialect::Streamable, None, &limits, ready);
    let asking = async {
        let health = Request::new("GET", "/health").send(&address).await.json().await;
        assert_eq!((&health["status"], &health["mcp"]["available"]), (&json!("degraded"), &json!(false)));
        for early in [Request::post(&call(1, "a")), Request::new("GET", "/metrics"), Request::new("GET", "/mcp")] {
            let early = early.send(&address).await;
            assert_eq!((early.status, early.header("retry-after")), (503, Some("1")));
        }
        made.send(()).unwrap();
    };
    let (waited, ()) = tokio::join!(waiting, asking);
    let (listener, is_made) = waited.unwrap();
    is_made.unwrap();
    let stop = CancellationToken::new();
    let proxy = Proxy::streamable(Bridge::new(limits.clone(), Readiness::default()));
    let serving = tokio::spawn(proxy.serve(listener, stop.clone()));
    assert_eq!(Request::new("GET", "/health").send(&address).await.json().await["status"], "healthy");
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn whoever_stalls_before_the_proxy_is_there_keeps_nobody_waiting() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (made, ready) = tokio::sync::oneshot::channel::<()>();
    let limits = Limits { head: LATE, drain: LATE, ..limits() };
    let waiting = answer_until(listener, Dialect::Streamable, None, &limits, ready);
    let stalling = async {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nHost:").await.unwrap();
        // Others are served, so that this one was accepted before them.
        assert_eq!(Request::new("GET", "/mcp").send(&address).await.status, 503);
        made.send(()).unwrap();
        stream
    };
    let (waited, mut stream) = tokio::time::timeout(PATIENCE, async { tokio::join!(waiting, stalling) }).await.unwrap();
    waited.unwrap().1.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "it was never asked in full");
}

#[tokio::test]
async fn whoever_stalls_does_not_keep_a_proxy_that_stops() {
    let mut setup = Setup::with_limits(Limits { head: LATE, drain: LATE, ..limits() }).await;
    let mut stream = TcpStream::connect(&setup.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost:").await.unwrap();
    assert_eq!(Request::new("GET", "/health").send(&setup.address).await.status, 200);
    setup.stop.cancel();
    tokio::time::timeout(PATIENCE, &mut setup.listener).await.unwrap().unwrap().unwrap();
}
