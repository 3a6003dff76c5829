//! Servers that do not answer what they are asked, where their answers have to be read.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::JSON;
use super::streams::EVENTS;
use crate::http::{Request, call, initialize, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::warnings::Warnings;

/// How a server answers calls.
type Odd = fn() -> Reply;

/// A server of sessions that speaks one revision, and answers calls like this.
fn answering(odd: Odd) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| {
        let message = seen.json();
        match (seen.method.as_str(), message["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
                let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
                reply(200, &[JSON[0], ("mcp-session-id", "s")], text)
            }
            ("POST", Some("server/discover")) => reply(400, &[], "what?"),
            ("POST", Some("tools/call")) => odd(),
            _ => reply(202, &[], ""),
        }
    }
}

/// What calls are answered with, and what their client is told.
const CASES: [(Odd, &str); 6] = [
    (
        || reply(200, &[("content-type", "text/html; charset=utf-8")], "<html>honey</html>"),
        "answers tools/call with status 200 and a body (text/html; charset=utf-8) that is no answer",
    ),
    (|| reply(200, &JSON, "{\"honey\":"), "status 200 and a body (application/json) that is no answer"),
    (|| reply(200, &JSON, ""), "answers tools/call with status 200 and no body"),
    (|| reply(202, &[], ""), "answers tools/call with status 202 and no body"),
    (
        || reply(200, &JSON, r#"{"jsonrpc":"2.0","id":"honey","result":{}}"#),
        "answers tools/call with status 200 and the id of another request",
    ),
    (|| reply(200, &EVENTS, ": honey\n\n"), "ended its stream of events before it answered tools/call"),
];

/// The client is told what the server did, under its own id, and so is the log, once.
fn is_told(answer: &Value, told: &str, log: &[String]) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("c"), &json!(-32603)), "{told}: {answer}");
    assert!(message.contains(told) && message.contains("log"), "{told}: {message}");
    let [line] = log else { panic!("{told}: {log:?}") };
    assert!(line.contains("the MCP server did not answer a request") && line.contains("tools/call"), "{line}");
    assert!(!message.contains("honey") && !line.contains("honey"), "what a server says may be a secret");
}

#[tokio::test]
async fn a_client_without_sessions_is_told_what_the_server_did_instead_of_answering() {
    let warnings = Warnings::listen();
    for (odd, told) in CASES {
        let server = Server::start(answering(odd)).await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        warnings.take();
        let mut answer = before.send(modern("c", "tools/call", json!({"name": "a"})).plain()).await;
        assert_eq!(answer.status, 200);
        is_told(&answer.json().await, told, &warnings.take());
    }
}

#[tokio::test]
async fn a_client_of_an_older_revision_is_told_what_the_server_did_instead_of_answering() {
    let warnings = Warnings::listen();
    // Events pass as they come, so that nobody knows before their end that there is no answer among them.
    for (odd, told) in &CASES[..5] {
        let server = Server::start(answering(*odd)).await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        let mut opened = before.send(Request::post(&initialize("2025-03-26"))).await;
        assert_eq!(opened.json().await["result"]["protocolVersion"], "2025-03-26");
        warnings.take();
        let mut answer = before.send(Request::post(&call("c", "a")).in_session("s")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        is_told(&answer.json().await, told, &warnings.take());
    }
}
