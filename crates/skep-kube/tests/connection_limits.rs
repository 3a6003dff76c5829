//! Clients that take a connection and give nothing: they are cut off, and others get their turn.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "connection_limits/giving_way.rs"]
mod giving_way;
#[path = "connection_limits/running.rs"]
mod running;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use skep_kube::server::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use running::{LIVENESS, LONG, Running, serve, until_closed};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_client_that_never_shakes_hands_is_cut_off() {
    let server = serve(Limits { handshake: SHORT, ..Limits::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut said)).await.expect("the connection is still open");
}

#[tokio::test]
async fn half_a_request_is_cut_off_and_so_is_silence() {
    let server = serve(Limits { idle: SHORT, ..Limits::default() }).await;
    for beginning in [b"".as_slice(), b"GET /livez HTTP/1.1\r\nHost: loc", b"PRI * HTTP/2.0\r\n"] {
        let mut stream = server.connect().await;
        stream.write_all(beginning).await.unwrap();
        assert!(!until_closed(&mut stream).await.contains("200 OK"));
    }
    let mut stream = server.connect().await;
    stream.write_all(LIVENESS).await.unwrap();
    assert!(until_closed(&mut stream).await.contains("200 OK"), "what is asked in time is answered");
}

#[tokio::test]
async fn a_watch_may_be_silent_for_longer_than_a_connection() {
    let server = serve(Limits { idle: SHORT, ..Limits::default() }).await;
    let mut stream = server.connect().await;
    let watch = "GET /api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=2 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let begun = Instant::now();
    stream.write_all(watch.as_bytes()).await.unwrap();
    // The last chunk is empty: the watch has come to its own end.
    assert!(until_closed(&mut stream).await.ends_with("0\r\n\r\n"));
    assert!(begun.elapsed() > Duration::from_secs(2));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = serve(Limits { body: SHORT, idle: SHORT, ..Limits::default() }).await;
    let mut stream = server.connect().await;
    let head = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let said = until_closed(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 504 ") && said.contains("did not complete within"), "{said}");
}

/// Sends the head of a request, reads the answer, and then sends the body.
async fn answer_before_body(server: &Running, head: &str, body: usize) -> (String, TlsStream<TcpStream>) {
    let mut stream = server.connect().await;
    stream.write_all(format!("{head}Host: localhost\r\nContent-Length: {body}\r\n\r\n").as_bytes()).await.unwrap();
    // Whoever does not want the body may stop reading it at any time, which is not the client's mistake.
    let _ = stream.write_all(&vec![b' '; body]).await;
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("\r\n\r\n") {
        let read = tokio::time::timeout(LONG, stream.read_buf(&mut answer)).await.unwrap().unwrap();
        assert_ne!(read, 0, "no answer: {}", String::from_utf8_lossy(&answer));
    }
    (String::from_utf8_lossy(&answer).to_lowercase(), stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_nobody_wants_does_not_cost_the_answer() {
    let server = serve(Limits::default()).await;
    // An answer that does not depend on the body, and one that the body is too large for.
    for (head, code) in [("POST /nothing HTTP/1.1\r\n", 404), ("POST /api/v1/namespaces HTTP/1.1\r\n", 413)] {
        let (answer, _) = answer_before_body(&server, head, 20 * 1024 * 1024).await;
        assert!(answer.starts_with(&format!("http/1.1 {code} ")), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    // One that is small is read, and the connection goes on.
    let (answer, mut stream) = answer_before_body(&server, "POST /nothing HTTP/1.1\r\n", 100 * 1024).await;
    assert!(answer.starts_with("http/1.1 404 ") && !answer.contains("connection: close"), "{answer}");
    stream.write_all(LIVENESS).await.unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("200 OK") {
        assert_ne!(tokio::time::timeout(LONG, stream.read_buf(&mut said)).await.unwrap().unwrap(), 0);
    }
}

/// The code of an answer to a request with so many headers of 8 KiB, over HTTP/1.1 and over HTTP/2.
async fn codes_for(server: &Running, headers: usize) -> [u16; 2] {
    let head = || {
        let mut request = Request::get("https://localhost/livez").body(Empty::<Bytes>::new()).unwrap();
        for number in 0..headers {
            let name = HeaderName::try_from(format!("x-filler-{number}")).unwrap();
            request.headers_mut().insert(name, HeaderValue::try_from("x".repeat(8 * 1024)).unwrap());
        }
        request
    };
    let io = TokioIo::new(server.connect().await);
    let (mut older, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(async move { drop(connection.await) });
    let io = TokioIo::new(server.connect().await);
    let (mut newer, connection) = http2::Builder::new(TokioExecutor::new()).handshake(io).await.unwrap();
    connections.spawn(async move { drop(connection.await) });
    [older.send_request(head()).await, newer.send_request(head()).await].map(|answer| answer.unwrap().status().as_u16())
}

#[tokio::test]
async fn heads_may_be_large_but_not_without_end() {
    let server = serve(Limits::default()).await;
    assert_eq!(codes_for(&server, 1).await, [200, 200]);
    assert_eq!(codes_for(&server, 20).await, [200, 200]);
    assert_eq!(codes_for(&server, 40).await, [431, 431]);
}
