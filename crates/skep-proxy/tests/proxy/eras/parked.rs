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

/// Where clients are that prove nothing.
fn place(last: u8) -> [u8; 4] {
    [127, 0, 0, last]
}

#[tokio::test]
async fn one_client_leaves_eight_calls_waiting_and_all_of_them_256() {
    let (_server, before) = start().await;
    let from = async |place: [u8; 4], request: Request| {
        let mut answer = request.send_from(place, &before.address).await;
        let told = if answer.status == 200 { answer.json().await["result"]["resultType"].clone() } else { json!(null) };
        (answer.status, told)
    };
    let kind = async |request: Request| from(place(1), request).await;
    let waits = (200, json!("input_required"));
    let refused = (503, json!(null));
    for id in 0..8 {
        assert_eq!(kind(call(id, Some("Bearer a"))).await, waits);
    }
    // It is the same client, by whichever way its request came.
    for (name, value) in [("X-Amzn-Trace-Id", "Root=1"), ("Cf-Ray", "2"), ("X-B3-TraceId", "3"), ("X-Request-Id", "4")]
    {
        assert_eq!(kind(call(8, Some("Bearer a")).header(name, value)).await, refused, "{name}");
    }
    // Each waits in a session of its own.
    assert_eq!(kind(call(8, Some("Bearer a"))).await, refused);
    assert_eq!(kind(call(9, Some("Bearer b"))).await, waits);
    // Those who cannot be told from each other have some places together, and leave the others to those elsewhere.
    for last in 2..5 {
        for id in 0..64 {
            assert_eq!(from(place(last), call(id, None)).await, waits, "{last} {id}");
        }
        let full = call(64, None).send_from(place(last), &before.address).await;
        assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
        let made_up = call(64, Some("Bearer another"));
        assert_eq!(from(place(last), made_up).await, refused, "anybody can say to be somebody");
    }
    for id in 10..65 {
        assert_eq!(from(place(5), call(id, None)).await, waits, "{id}");
    }
    let full = call(257, None).send_from(place(6), &before.address).await;
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
}

#[tokio::test]
async fn whoever_proves_nothing_comes_back_for_a_call_with_what_it_was_given_and_nobody_else_does() {
    let (server, before) = start().await;
    let begun = async |id| {
        let told = call(id, None).send_from(place(2), &before.address).await.json().await;
        told["result"]["requestState"].as_str().unwrap().to_owned()
    };
    let (state, other) = (begun(1).await, begun(2).await);
    assert_ne!(state, other);
    let back = |state: &str, token: Option<&str>| {
        let params = json!({
            "name": "a", "requestState": state,
            "inputResponses": {"question-1": {"action": "accept", "content": {"by": state}}},
        });
        let again = with_capabilities(3, "tools/call", params, &json!({"elicitation": {}}));
        token.into_iter().fold(again, |again, token| again.header("Authorization", token))
    };
    server.seen();
    for (guessed, token) in [(&*format!("{state}A"), None), ("sk1.AAAA", None), (&*state, Some("Bearer eve"))] {
        let mut refused = before.send(back(guessed, token)).await;
        assert_eq!(refused.json().await["error"]["code"], -32602, "{guessed} {token:?}");
    }
    assert!(words(&server.seen()).is_empty());
    // A client may be elsewhere by then: what it was given tells that it is the same one.
    let _waiting = back(&state, None).send_from(place(3), &before.address).await;
    let answers: Vec<Value> = server.seen().iter().map(Seen::json).filter(|message| message["id"] == "q").collect();
    assert_eq!(answers.iter().map(|answer| &answer["result"]["content"]["by"]).collect::<Vec<_>>(), [&json!(state)]);
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
