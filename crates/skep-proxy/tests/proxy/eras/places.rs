//! Sessions at a server for clients that have none: how many those take who prove nothing.

use futures::future::join_all;
use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::JSON;
use super::streams::{EVENTS, sessions};
use crate::http::{Request, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::transparent::streams::stream;

/// A server that answers quick calls, and no others.
async fn start() -> (Server, Before) {
    let answer = |_: &Seen, message: &Value| {
        if message["params"]["name"] == "quick" {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
            return reply(200, &JSON, answer.to_string());
        }
        silent()
    };
    let server = Server::start(sessions(answer, |_| silent())).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    (server, before)
}

/// A stream on which nothing ever comes.
fn silent() -> Reply {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    // It stays open with whoever could write to it.
    tokio::spawn(async move { sender.closed().await });
    stream(&EVENTS, receiver)
}

fn place(last: u8) -> [u8; 4] {
    [127, 0, 0, last]
}

/// A request of somebody who says to be this.
fn said(request: Request, token: Option<usize>) -> Request {
    token.iter().fold(request, |request, token| request.header("Authorization", &format!("Bearer {token}")))
}

#[tokio::test]
async fn whoever_proves_nothing_leaves_sessions_to_those_elsewhere() {
    let (_server, before) = start().await;
    let slow = |token| said(modern(1, "tools/call", json!({"name": "slow"})), token);
    let quick = || modern(2, "tools/call", json!({"name": "quick"})).plain();
    assert_eq!(quick().send_from(place(2), &before.address).await.status, 200);
    // Half of them say to be somebody, which anybody can.
    let calls = (0..128).map(|number| slow((number % 2 == 0).then_some(number)).send_from(place(2), &before.address));
    let open = join_all(calls).await;
    assert!(open.iter().all(|answer| answer.status == 200));
    for token in [None, Some(1000)] {
        let full = said(quick(), token).send_from(place(2), &before.address).await;
        assert_eq!((full.status, full.header("retry-after")), (503, Some("1")), "{token:?}");
    }
    for token in [None, Some(1000)] {
        assert_eq!(said(quick(), token).send_from(place(3), &before.address).await.status, 200, "{token:?}");
    }
    drop(open);
    let again = async { while quick().send_from(place(2), &before.address).await.status == 503 {} };
    tokio::time::timeout(crate::http::PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn whoever_listens_leaves_sessions_to_those_who_call() {
    let (_server, before) = start().await;
    let listen = || modern("l", "subscriptions/listen", json!({"notifications": {}}));
    let open = join_all((0..32).map(|_| listen().send_from(place(2), &before.address))).await;
    assert!(open.iter().all(|stream| stream.status == 200));
    let mut refused = listen().send_from(place(2), &before.address).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.json().await["id"], "l");
    assert_eq!(listen().send_from(place(3), &before.address).await.status, 200);
    let quick = modern(2, "tools/call", json!({"name": "quick"})).plain();
    assert_eq!(quick.send_from(place(2), &before.address).await.status, 200);
}
