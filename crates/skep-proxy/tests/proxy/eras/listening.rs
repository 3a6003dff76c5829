//! Clients that listen by a request, before a server that tells changes to sessions.

use std::sync::Mutex;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::JSON;
use super::streams::EVENTS;
use crate::http::modern;
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

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
