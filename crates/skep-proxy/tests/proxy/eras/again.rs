//! Clients that listen by a request, before a server of the same era whose streams end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::streams::EVENTS;
use super::{JSON, got, stands_alone, words};
use crate::http::{PATIENCE, Response, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::transparent::streams::stream;

pub(super) type Parts = Arc<Mutex<Vec<UnboundedSender<&'static str>>>>;

/// A server whose streams the test writes, the newest one last.
pub(super) fn told_by_the_test() -> (Parts, impl Fn(&Seen) -> Reply + Send + Sync + 'static) {
    let parts: Parts = Arc::default();
    let opened = Arc::clone(&parts);
    let answer = move |seen: &Seen| {
        if seen.json()["method"] != "subscriptions/listen" {
            return stands_alone(seen);
        }
        let (sender, receiver) = unbounded_channel();
        sender.send(acknowledged()).unwrap();
        opened.lock().unwrap().push(sender);
        stream(&EVENTS, receiver)
    };
    (parts, answer)
}

fn event(message: &Value) -> &'static str {
    format!("event: message\ndata: {message}\n\n").leak()
}

pub(super) fn note(method: &str, params: &Value) -> &'static str {
    let mut params = params.clone();
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": "of the server"});
    event(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn acknowledged() -> &'static str {
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["hive://3"]});
    note("notifications/subscriptions/acknowledged", &json!({"notifications": honoured}))
}

pub(super) const CHANGED: &str = "notifications/tools/list_changed";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// Begins to listen, and hears that this was understood.
async fn listen(before: &Before) -> Response {
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["hive://3"]});
    let mut stream = before.send(modern("l", "subscriptions/listen", json!({"notifications": wanted}))).await;
    assert_eq!(next(&mut stream).await, "notifications/subscriptions/acknowledged");
    stream
}

/// The next message, which is for the client under its own name.
async fn next(stream: &mut Response) -> String {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await.unwrap().unwrap();
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l", "{message}");
    message["method"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned()
}

pub(super) fn last(parts: &Parts) -> UnboundedSender<&'static str> {
    parts.lock().unwrap().last().unwrap().clone()
}

/// The server ends its newest stream.
pub(super) fn end(parts: &Parts) {
    drop(parts.lock().unwrap().pop());
}

async fn is_over(stream: &mut Response) {
    let last = tokio::time::timeout(PATIENCE, stream.message()).await.unwrap().unwrap();
    let result = json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": "l"}});
    assert_eq!(last, json!({"jsonrpc": "2.0", "id": "l", "result": result}));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn whoever_listens_hears_on_when_the_server_ends_its_stream() {
    let ends = [
        event(&json!({"jsonrpc": "2.0", "id": "l", "result": {"resultType": "complete"}})),
        event(&json!({"jsonrpc": "2.0", "id": "l", "error": {"code": -32603, "message": "restarting"}})),
        // Nobody gets a part of an event.
        "event: message\ndata: {\"jsonrpc\"",
        ": bye\n\n",
    ];
    futures::future::join_all(ends.map(hears_on_after)).await;
}

async fn hears_on_after(farewell: &'static str) {
    let (parts, answer) = told_by_the_test();
    let server = Server::start(answer).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut stream = listen(&before).await;
    last(&parts).send(note(CHANGED, &json!({}))).unwrap();
    assert_eq!(next(&mut stream).await, CHANGED);
    last(&parts).send(farewell).unwrap();
    end(&parts);
    // Whatever may have changed meanwhile, and no second acknowledgement.
    assert_eq!((next(&mut stream).await, next(&mut stream).await), (CHANGED.to_owned(), UPDATED.to_owned()));
    last(&parts).send(note(UPDATED, &json!({"uri": "hive://3"}))).unwrap();
    assert_eq!(next(&mut stream).await, UPDATED, "what the new stream tells");
    let mut asked = server.seen();
    asked.retain(|seen| seen.json()["method"] == "subscriptions/listen");
    assert_eq!(asked.len(), 2);
    assert_eq!((&asked[0].body, &asked[0].headers), (&asked[1].body, &asked[1].headers));
}

#[tokio::test]
async fn whoever_listens_hears_on_when_the_server_was_away() {
    let (parts, answer) = told_by_the_test();
    let server = Server::start(answer).await;
    let address = server.address.clone();
    let before = Before::local(Dialect::Streamable, &address).await;
    let mut stream = listen(&before).await;
    server.end().await;
    parts.lock().unwrap().clear();
    // It is tried in vain, and the client sees that its stream is alive.
    assert_eq!(stream.event().await.unwrap(), ": keep-alive\n\n");
    let (parts, answer) = told_by_the_test();
    let server = Server::start_at(&address, answer).await;
    assert_eq!((next(&mut stream).await, next(&mut stream).await), (CHANGED.to_owned(), UPDATED.to_owned()));
    drop(stream);
    let closed = last(&parts);
    tokio::time::timeout(PATIENCE, closed.closed()).await.unwrap();
    assert_eq!(words(&server.seen()), ["subscriptions/listen"]);
}

#[tokio::test]
async fn whoever_listens_is_told_that_it_is_over_when_there_is_no_stream_any_more() {
    let refusal = json!({"jsonrpc": "2.0", "id": "l", "error": {"code": -32601, "message": "no"}});
    let refusals: [Box<dyn Fn() -> Reply + Send + Sync>; 3] = [
        Box::new(|| reply(401, &[("www-authenticate", "Bearer")], "")),
        Box::new({
            let refusal = refusal.to_string();
            move || reply(404, &JSON, refusal.clone())
        }),
        Box::new(move || reply(200, &EVENTS, event(&refusal))),
    ];
    for refuse in refusals {
        let (parts, answer) = told_by_the_test();
        let server = Server::start(answer).await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        let mut stream = listen(&before).await;
        server.replace(move |_| refuse());
        end(&parts);
        is_over(&mut stream).await;
        assert_eq!(words(&got(&server, 1).await), ["subscriptions/listen"], "it is asked once");
    }
}

#[tokio::test]
async fn what_ends_before_it_was_acknowledged_is_lost_and_not_asked_again() {
    let server = Server::start(|seen| match seen.json()["method"].as_str() {
        Some("subscriptions/listen") => reply(200, &EVENTS, ": hello\n\n"),
        _ => stands_alone(seen),
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut stream = before.send(modern("l", "subscriptions/listen", json!({"notifications": {}}))).await;
    assert_eq!(stream.message().await.unwrap()["error"]["code"], -32603);
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn whoever_listens_sees_that_the_stream_is_alive_while_the_server_takes_long_for_another() {
    const LONGER_THAN_A_PAUSE: Duration = Duration::from_secs(16);
    let (parts, answer) = told_by_the_test();
    let server = Server::start(answer).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut stream = listen(&before).await;
    server.seen();
    let held = server.hold();
    end(&parts);
    // It asks for another stream, and is not answered.
    while server.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..4 {
        tokio::time::pause();
        tokio::time::advance(LONGER_THAN_A_PAUSE).await;
        tokio::time::resume();
        assert_eq!(stream.event().await.unwrap(), ": keep-alive\n\n");
    }
    drop(held);
    while stream.event().await.unwrap() == ": keep-alive\n\n" {}
    assert_eq!(next(&mut stream).await, UPDATED);
}
