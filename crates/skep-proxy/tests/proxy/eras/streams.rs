//! What a server of sessions says before its answer, for clients that have none: streams that break, questions, errors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::{JSON, got, words};
use crate::http::{Request, modern, with_capabilities};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

pub(super) const EVENTS: [(&str, &str); 1] = [("content-type", "text/event-stream")];

/// A server of sessions that does with calls what a function says, and with GET what another one says.
pub(super) fn sessions(
    call: impl Fn(&Seen, &Value) -> Reply + Send + Sync + 'static,
    get: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| {
        let message = seen.json();
        match (seen.method.as_str(), message["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s"}});
                let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                reply(200, &[JSON[0], ("mcp-session-id", "s")], body.to_string())
            }
            ("POST", Some("tools/call")) => call(seen, &message),
            ("POST", Some("server/discover")) => reply(400, &[], "what?"),
            ("POST", _) => reply(202, &[], ""),
            ("GET", _) if seen.target == "/mcp" => get(seen),
            _ => reply(204, &[], ""),
        }
    }
}

pub(super) fn event(id: &str, data: &str) -> String {
    format!("id: {id}\nretry: 1\nevent: message\ndata: {data}\n\n")
}

#[tokio::test]
async fn a_stream_that_breaks_is_taken_up_again_and_the_call_is_made_once() {
    let asked = Mutex::new(Value::Null);
    let asked = std::sync::Arc::new(asked);
    let later = std::sync::Arc::clone(&asked);
    let call = move |_: &Seen, message: &Value| {
        *asked.lock().unwrap() = message["id"].clone();
        reply(200, &EVENTS, "id: 4-0\nretry: 1\ndata:\n\n")
    };
    let get = move |seen: &Seen| {
        assert_eq!(seen.header("last-event-id"), Some("4-0"));
        let body = json!({"jsonrpc": "2.0", "id": *later.lock().unwrap(), "result": {"content": []}});
        reply(200, &EVENTS, event("4-1", &body.to_string()))
    };
    let server = Server::start(sessions(call, get)).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let answer = before.send(modern("x", "tools/call", json!({"name": "a"}))).await.json().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!("x"), &json!([])));
    let calls = words(&server.seen()).into_iter().filter(|word| word == "tools/call").count();
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_stream_that_is_lost_is_told_and_the_call_is_not_made_again() {
    for body in ["", "id: 4-0\nretry: 1\ndata:\n\n"] {
        let server = Server::start(sessions(move |_, _| reply(200, &EVENTS, body), |_| reply(405, &[], ""))).await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        let answer = before.send(modern(7, "tools/call", json!({"name": "a"}))).await.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)));
        assert!(answer["error"]["message"].as_str().unwrap().contains("unknown"), "{answer}");
        let calls = words(&server.seen()).into_iter().filter(|word| word == "tools/call").count();
        assert_eq!(calls, 1);
    }
}

#[tokio::test]
async fn several_messages_in_one_body_are_all_read() {
    let call = |_: &Seen, message: &Value| {
        let token = &message["params"]["_meta"]["progressToken"];
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
        reply(200, &JSON, format!("{progress}\n{answer}\n"))
    };
    let server = Server::start(sessions(call, |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let params = json!({"name": "a", "_meta": {"progressToken": "mine"}});
    let mut stream = before.send(modern(7, "tools/call", params)).await;
    assert_eq!(stream.message().await.unwrap()["params"]["progressToken"], "mine");
    assert_eq!(stream.message().await.unwrap()["result"]["resultType"], "complete");
}

/// A request of a client that can be asked.
fn askable(id: u32, extra: &Value) -> Request {
    let mut params = json!({"name": "a"});
    for (name, value) in extra.as_object().unwrap() {
        params[name] = value.clone();
    }
    with_capabilities(id, "tools/call", params, &json!({"elicitation": {"url": {}}, "roots": {}}))
}

#[tokio::test]
async fn an_error_that_sends_a_person_to_a_page_becomes_a_question() {
    let count = AtomicU32::new(0);
    let call = move |_: &Seen, message: &Value| {
        let page = json!({"mode": "url", "elicitationId": "e", "url": "https://hive.example", "message": "go"});
        let error = json!({"code": -32042, "message": "first", "data": {"elicitations": [page]}});
        let body = match count.fetch_add(1, Ordering::Relaxed) {
            1 => json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}),
            _ => json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
        };
        reply(200, &JSON, body.to_string())
    };
    let server = Server::start(sessions(call, |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let asked = before.send(askable(1, &json!({}))).await.json().await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let page = json!({"mode": "url", "url": "https://hive.example", "message": "go"});
    assert_eq!(asked["inputRequests"], json!({"page-0": {"method": "elicitation/create", "params": page}}));
    server.seen();
    let state = &asked["requestState"];
    let answers = |state: &Value| json!({"inputResponses": {"page-0": {"action": "accept"}}, "requestState": state});
    let refused = before.send(askable(2, &answers(&json!("sk1.x")))).await.json().await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(words(&server.seen()), Vec::<String>::new(), "the server hears nothing of it");
    let answers = answers(state);
    let done = before.send(askable(2, &answers)).await.json().await;
    assert_eq!(done["result"]["resultType"], "complete");
    let called = server.seen().into_iter().find(|seen| seen.json()["method"] == "tools/call").unwrap();
    assert_eq!(called.json()["params"], json!({"name": "a"}));
    let refused = before.send(modern(3, "tools/call", json!({"name": "a"}))).await;
    assert_eq!(refused.status, 400, "it cannot be sent to pages");
}

#[tokio::test]
async fn what_the_client_cannot_be_asked_is_refused_at_the_server() {
    let call = |_: &Seen, message: &Value| {
        let asked = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}});
        let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
        let events = [asked, ping, answer].map(|message| format!("data: {message}\n\n"));
        reply(200, &EVENTS, events.concat())
    };
    let server = Server::start(sessions(call, |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    let done = before.send(askable(1, &json!({}))).await.json().await;
    assert_eq!(done["result"]["resultType"], "complete");
    let seen = got(&server, 8).await;
    let answered = |id: &str| seen.iter().map(Seen::json).find(|message| message["id"] == id).unwrap();
    assert_eq!(answered("q")["error"]["code"], -32601);
    assert_eq!(answered("p")["result"], json!({}));
}

#[tokio::test]
async fn whoever_listens_and_takes_anything_gets_a_stream() {
    let server = Server::start(sessions(|_, _| reply(400, &[], ""), |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let listen = |kind| modern(1, "subscriptions/listen", json!({"notifications": {}})).instead("Accept", kind);
    assert_eq!(before.send(listen("application/json")).await.status, 406);
    let stream = before.send(listen("*/*")).await;
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
}
