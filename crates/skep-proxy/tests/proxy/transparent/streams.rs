//! Streams pass as they come, and addresses in them can be reached.

use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::Frame;
use skep_proxy::Forwarded;
use skep_proxy::transparent::{Dialect, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::server::{Before, Reply, Server};
use crate::http::{PATIENCE, Request, call};

/// A stream whose parts the test sends.
pub(crate) fn stream(headers: &[(&str, &str)], parts: mpsc::UnboundedReceiver<&'static str>) -> Reply {
    let parts = futures::stream::unfold(parts, async |mut parts| Some((parts.recv().await?, parts)));
    let frames = parts.map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from_static(part.as_bytes()))));
    let mut response = hyper::Response::builder();
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(BoxBody::new(StreamBody::new(frames))).unwrap()
}

async fn streaming() -> (Server, mpsc::UnboundedSender<&'static str>) {
    streaming_with(&[("content-type", "text/event-stream")]).await
}

async fn streaming_with(
    headers: &'static [(&'static str, &'static str)],
) -> (Server, mpsc::UnboundedSender<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let server = Server::start(move |seen| match seen.method.as_str() {
        "OPTIONS" => super::server::reply(204, &[], ""),
        _ => stream(headers, receiver.lock().unwrap().take().unwrap()),
    })
    .await;
    (server, sender)
}

#[tokio::test]
async fn events_are_passed_on_as_they_come_and_as_they_are() {
    let (server, sender) = streaming().await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut response = before.send(Request::post(&call(1, "x"))).await;
    for part in ["id: 1\nda", "ta: {}\n\n"] {
        sender.send(part).unwrap();
    }
    assert_eq!(response.event().await.unwrap(), "id: 1\ndata: {}\n\n");
    sender.send(": comment\r\n\r\nretry: 7\nevent: endpoint\ndata: /m\n\n").unwrap();
    drop(sender);
    assert_eq!(response.text().await, ": comment\r\n\r\nretry: 7\nevent: endpoint\ndata: /m\n\n");
}

#[tokio::test]
async fn the_stream_of_a_session_ends_with_the_proxy_and_does_not_keep_it() {
    let (server, sender) = streaming().await;
    let mut before = Before::local(Dialect::Streamable, &server.address).await;
    let mut stream = before.send(Request::new("GET", "/mcp").header("Accept", "text/event-stream")).await;
    sender.send("data: 1\n\n").unwrap();
    assert_eq!(stream.event().await.unwrap(), "data: 1\n\n");
    // It is ended, not cut, while the server would go on.
    let ((), end) = tokio::join!(before.stop(), stream.event());
    assert_eq!(end, None);
}

#[tokio::test]
async fn events_do_not_wait_for_each_other_when_their_length_is_known() {
    let (server, sender) = streaming_with(&[("content-type", "text/event-stream"), ("content-length", "18")]).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut response = before.send(Request::post(&call(1, "x"))).await;
    sender.send("data: 1\n\n").unwrap();
    assert_eq!(response.event().await.unwrap(), "data: 1\n\n");
    sender.send("data: 2\n\n").unwrap();
    assert_eq!(response.event().await.unwrap(), "data: 2\n\n");
}

#[tokio::test]
async fn a_small_answer_leaves_in_one_piece_however_it_came() {
    let (server, sender) = streaming_with(&[("content-type", "application/json"), ("content-length", "2")]).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut client = TcpStream::connect(&before.address).await.unwrap();
    let body = call(1, "x").to_string();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
    client.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    sender.send("{").unwrap();
    sender.send("}").unwrap();
    let mut answer = [0; 4096];
    let read = tokio::time::timeout(PATIENCE, client.read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n{}"), "{answer}");
    assert!(answer.contains("content-length: 2\r\n"), "{answer}");
}

#[tokio::test]
async fn trap_37_the_address_for_messages_is_one_that_the_client_can_reach() {
    for (forwarded, expected) in [
        (Forwarded::default(), "/messages?s=1"),
        (Forwarded { is_trusted: false, prefix: "p/".to_owned() }, "/p/messages?s=1"),
        (Forwarded { is_trusted: true, prefix: String::new() }, "https://pub.example/hive/messages?s=1"),
        (Forwarded { is_trusted: true, prefix: "/p".to_owned() }, "https://pub.example/p/messages?s=1"),
    ] {
        let (server, sender) = streaming().await;
        let target = Target::local(Dialect::Sse, &format!("http://{}", server.address)).unwrap();
        let before = Before::new(target, forwarded).await;
        let open = Request::new("GET", "/sse")
            .header("Accept", "text/event-stream")
            .header("Accept-Encoding", "gzip")
            .header("X-Forwarded-Host", "pub.example")
            .header("X-Forwarded-Proto", "https")
            .header("X-Forwarded-Prefix", "/hive/");
        let mut response = before.send(open).await;
        for part in ["event: endpoint\nda", "ta: /messages?s=1\n\nda", "ta: http://b/messages\n\n"] {
            sender.send(part).unwrap();
        }
        assert_eq!(response.event().await.unwrap(), format!("event: endpoint\ndata: {expected}\n\n"));
        assert_eq!(response.event().await.unwrap(), "data: http://b/messages\n\n", "messages are left alone");
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.header("accept-encoding"), None, "what is looked at has to be readable");
    }
}

#[tokio::test]
async fn trap_41_an_event_of_any_size_passes() {
    let (server, sender) = streaming().await;
    let target = Target::local(Dialect::Sse, &format!("http://{}", server.address)).unwrap();
    let before = Before::new(target, Forwarded { is_trusted: false, prefix: "/p".to_owned() }).await;
    let mut response = before.send(Request::new("GET", "/sse")).await;
    let large: &'static str = Box::leak(format!("data: {}\u{a0}\n\n", "x".repeat(3 << 20)).into_boxed_str());
    sender.send(large).unwrap();
    sender.send("event: endpoint\ndata: /m\n\nrest").unwrap();
    drop(sender);
    assert_eq!(response.text().await, format!("{large}event: endpoint\ndata: /p/m\n\nrest"));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_exchange_with_the_server() {
    let (server, sender) = streaming().await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut response = before.send(Request::post(&call(1, "x"))).await;
    sender.send("data: 1\n\n").unwrap();
    assert!(response.event().await.is_some());
    drop(response);
    // The server finds out when its stream is dropped.
    tokio::time::timeout(PATIENCE, sender.closed()).await.unwrap();
}
