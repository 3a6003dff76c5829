//! Clients that listen by a request, before a server that tells changes to sessions.

use std::sync::Mutex;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::streams::EVENTS;
use super::{JSON, stands_alone};
use crate::http::{PATIENCE, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::transparent::streams::stream;

/// A server that forgets its first session once that has listened.
fn forgetting() -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let (opened, heard) = (Mutex::new(0), Mutex::new(Vec::<String>::new()));
    move |seen| {
        let message = seen.json();
        let session = seen.header("mcp-session-id").unwrap_or_default().to_owned();
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        match (seen.method.as_str(), message["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let mut opened = opened.lock().unwrap();
                *opened += 1;
                let promised = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": promised});
                reply(200, &[JSON[0], ("mcp-session-id", &format!("s-{opened}"))], answer(result))
            }
            ("POST", Some("server/discover")) => reply(400, &[], "what?"),
            ("POST", Some("resources/subscribe")) => reply(200, &JSON, answer(json!({}))),
            ("GET", _) if seen.target == "/mcp" => {
                let mut heard = heard.lock().unwrap();
                if heard.contains(&session) {
                    return reply(404, &[], "");
                }
                heard.push(session);
                let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                let other = json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"});
                reply(200, &EVENTS, format!("data: {other}\n\ndata: {changed}\n\n"))
            }
            _ => reply(202, &[], ""),
        }
    }
}

#[tokio::test]
async fn whoever_listens_hears_on_when_the_session_is_gone_and_that_anything_may_have_changed() {
    let server = Server::start(forgetting()).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["hive://3"]});
    let mut stream = before.send(modern("l", "subscriptions/listen", json!({"notifications": wanted}))).await;
    let acknowledged = stream.message().await.unwrap();
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["hive://3"]});
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    // What the first session tells; then one of each kind, because of what nobody heard; then what the second one tells.
    let mut told = Vec::new();
    for _ in 0..4 {
        let message = stream.message().await.unwrap();
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l", "{message}");
        told.push(message["method"].as_str().unwrap().to_owned());
    }
    let (tools, resource) = ("notifications/tools/list_changed", "notifications/resources/updated");
    assert_eq!(told, [tools, tools, resource, tools]);
    let seen = server.seen();
    let sessions = seen.iter().filter(|seen| seen.json()["method"] == "resources/subscribe");
    let sessions: Vec<_> = sessions.map(|seen| seen.header("mcp-session-id").unwrap()).collect();
    assert_eq!(sessions, ["s-1", "s-2"], "what is watched is watched in the new session, too");
}

#[tokio::test]
async fn whoever_listens_is_told_that_it_is_over_when_there_is_no_session_for_it_any_more() {
    let server = Server::start(forgetting()).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let wanted = json!({"toolsListChanged": true});
    let mut stream = before.send(modern("l", "subscriptions/listen", json!({"notifications": wanted}))).await;
    assert_eq!(stream.message().await.unwrap()["params"]["notifications"], wanted);
    // As for a token that has ended meanwhile.
    server.replace(|_| reply(401, &[], ""));
    let over = async {
        loop {
            let message = stream.message().await.unwrap();
            if message.get("result").is_some() {
                break message;
            }
        }
    };
    let over = tokio::time::timeout(PATIENCE, over).await.unwrap();
    assert_eq!((&over["id"], &over["result"]["resultType"]), (&json!("l"), &json!("complete")));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn rule_25_a_client_has_some_streams_of_changes_and_no_more_whatever_its_server_speaks() {
    let of_sessions = Server::start(forgetting()).await;
    let parts = Mutex::new(Vec::new());
    let standing_alone = Server::start(move |seen| {
        if seen.json()["method"] != "subscriptions/listen" {
            return stands_alone(seen);
        }
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        parts.lock().unwrap().push(sender);
        stream(&EVENTS, receiver)
    })
    .await;
    for server in [of_sessions, standing_alone] {
        let before = Before::local(Dialect::Streamable, &server.address).await;
        let listen =
            |token| modern("l", "subscriptions/listen", json!({"notifications": {}})).header("Authorization", token);
        let mut open = Vec::new();
        for _ in 0..8 {
            open.push(before.send(listen("Bearer a")).await);
        }
        assert!(open.iter().all(|stream| stream.status == 200));
        let mut refused = before.send(listen("Bearer a")).await;
        assert_eq!((refused.status, refused.json().await["id"].clone()), (429, json!("l")));
        assert_eq!(before.send(listen("Bearer b")).await.status, 200);
        open.pop();
        let again = async { while before.send(listen("Bearer a")).await.status == 429 {} };
        tokio::time::timeout(crate::http::PATIENCE, again).await.unwrap();
    }
}
