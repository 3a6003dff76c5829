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
use tokio::sync::mpsc;

use super::server::{Before, Reply, Server};
use crate::http::{Request, call};

/// A stream whose parts the test sends.
fn stream(parts: mpsc::UnboundedReceiver<&'static str>) -> Reply {
    let parts = futures::stream::unfold(parts, async |mut parts| Some((parts.recv().await?, parts)));
    let frames = parts.map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from_static(part.as_bytes()))));
    hyper::Response::builder()
        .header("content-type", "text/event-stream")
        .body(BoxBody::new(StreamBody::new(frames)))
        .unwrap()
}

async fn streaming() -> (Server, mpsc::UnboundedSender<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let server = Server::start(move |seen| match seen.method.as_str() {
        "OPTIONS" => super::server::reply(204, &[], ""),
        _ => stream(receiver.lock().unwrap().take().unwrap()),
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
    tokio::time::timeout(crate::http::PATIENCE, sender.closed()).await.unwrap();
}
