//! Clients of sessions that are told of changes, before a server that tells them to whoever listens by a request.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::streams::EVENTS;
use super::{stands_alone, words};
use crate::http::{Request, initialize};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::transparent::streams::stream;

/// Streams that go on for as long as they are kept here.
type Open = Mutex<Vec<UnboundedSender<&'static str>>>;

/// A session with a server that does this with whoever listens, by how often that was tried before.
async fn session(listen: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Server, Before, String) {
    let tried = Mutex::new(0);
    let server = Server::start(move |seen: &Seen| {
        if seen.json()["method"] != "subscriptions/listen" {
            return stands_alone(seen);
        }
        let mut tried = tried.lock().unwrap();
        *tried += 1;
        listen(*tried - 1)
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let opened = before.send(Request::post(&initialize("2025-11-25")).plain()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    server.seen();
    (server, before, session)
}

fn event(message: &Value) -> &'static str {
    format!("event: message\ndata: {message}\n\n").leak()
}

/// A stream that begins with what it will tell, and goes on.
fn telling(open: &Open) -> Reply {
    let (sender, receiver) = unbounded_channel();
    let honoured = json!({"notifications": {"toolsListChanged": true}});
    let method = "notifications/subscriptions/acknowledged";
    sender.send(event(&json!({"jsonrpc": "2.0", "method": method, "params": honoured}))).unwrap();
    open.lock().unwrap().push(sender);
    stream(&EVENTS, receiver)
}

#[tokio::test]
async fn a_client_is_told_of_changes_although_the_server_could_not_be_listened_to_at_first() {
    let open = Open::default();
    let (server, before, session) =
        session(move |tried| if tried == 0 { reply(503, &[], "") } else { telling(&open) }).await;
    let mut listening = before.send(Request::listen(&session)).await;
    assert_eq!(listening.status, 200);
    // What changed until somebody listened is not known.
    let told = listening.message().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(words(&server.seen()), ["subscriptions/listen", "subscriptions/listen"]);
}

#[tokio::test]
async fn a_stream_begins_although_the_server_does_not_say_what_it_will_tell() {
    let open = Open::default();
    let (_server, before, session) = session(move |_| {
        let (sender, receiver) = unbounded_channel();
        open.lock().unwrap().push(sender);
        stream(&EVENTS, receiver)
    })
    .await;
    let listening = tokio::time::timeout(Duration::from_secs(15), before.send(Request::listen(&session))).await;
    assert_eq!(listening.unwrap().status, 200);
}

#[tokio::test]
async fn a_server_that_tells_no_changes_is_not_asked_for_them_again_and_again() {
    let (server, before, session) = session(|_| {
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}});
        reply(404, &[("content-type", "application/json")], error.to_string())
    })
    .await;
    let listening = before.send(Request::listen(&session)).await;
    assert_eq!(listening.status, 200);
    // A second one would come after one second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(words(&server.seen()), ["subscriptions/listen"]);
}
