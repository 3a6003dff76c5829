//! Calls that wait at the proxy for their clients: how many, and what becomes of them when it stops.

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::streams::{EVENTS, sessions};
use super::words;
use crate::http::{Request, with_capabilities};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// A server that asks, and waits for the answer for as long as it likes.
fn asking(_: &Seen, message: &Value) -> Reply {
    let question =
        json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"for": message["id"]}});
    let begun = Bytes::from(format!("data: {question}\n\n"));
    let frames = futures::stream::iter([Ok(Frame::data(begun))]).chain(futures::stream::pending());
    let mut held = reply(200, &EVENTS, "");
    *held.body_mut() = BodyExt::boxed(StreamBody::new(frames));
    held
}

fn call(id: u32, token: Option<&str>) -> Request {
    let call = with_capabilities(id, "tools/call", json!({"name": "a"}), &json!({"elicitation": {}}));
    match token {
        Some(token) => call.header("Authorization", token),
        None => call,
    }
}

async fn start() -> (Server, Before) {
    let server = Server::start(sessions(asking, |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    (server, before)
}

#[tokio::test]
async fn one_client_leaves_eight_calls_waiting_and_all_of_them_256() {
    let (_server, before) = start().await;
    let kind = async |request: Request| {
        let mut answer = before.send(request).await;
        let told = if answer.status == 200 { answer.json().await["result"]["resultType"].clone() } else { json!(null) };
        (answer.status, told)
    };
    let waits = (200, json!("input_required"));
    for id in 0..8 {
        assert_eq!(kind(call(id, Some("Bearer a"))).await, waits);
    }
    // It is the same client, by whichever way its request came.
    for (name, value) in [("X-Amzn-Trace-Id", "Root=1"), ("Cf-Ray", "2"), ("X-B3-TraceId", "3"), ("X-Request-Id", "4")]
    {
        assert_eq!(kind(call(8, Some("Bearer a")).header(name, value)).await, (503, json!(null)), "{name}");
    }
    // Each waits in a session of its own.
    assert_eq!(kind(call(8, Some("Bearer a"))).await, (503, json!(null)));
    assert_eq!(kind(call(9, Some("Bearer b"))).await, waits);
    for id in 10..257 {
        assert_eq!(kind(call(id, None)).await, waits, "{id}");
    }
    let full = before.send(call(257, None)).await;
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
}

#[tokio::test]
async fn calls_that_wait_are_called_off_when_the_proxy_stops() {
    let (server, mut before) = start().await;
    assert_eq!(before.send(call(1, Some("Bearer a"))).await.status, 200);
    server.seen();
    before.stop().await;
    let seen = server.seen();
    let answer = seen.iter().map(Seen::json).find(|message| message["id"] == "q").unwrap();
    assert_eq!(answer["result"], json!({"action": "cancel"}));
    let words = words(&seen);
    assert!(words.contains(&"DELETE".to_owned()), "{words:?}");
}
