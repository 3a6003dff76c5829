//! Every revision, method and role: the decision is the same in all of them.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::{authorizer, guarded, hive, legacy, steps};
use crate::http::{Request, modern, request};
use crate::transparent::server::Server;

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// A method, what it is given, and whether keepers may and everybody may.
const METHODS: [(&str, &str, bool, bool); 20] = [
    ("tools/call", r#"{"name":"weigh","arguments":{}}"#, true, false),
    ("tools/call", r#"{"name":"burn","arguments":{}}"#, false, false),
    ("tools/call", r#"{"name":"nowhere","arguments":{}}"#, false, false),
    ("prompts/get", r#"{"name":"greet"}"#, true, false),
    ("prompts/get", r#"{"name":"curse"}"#, false, false),
    // A tool and a prompt of one name are two things.
    ("prompts/get", r#"{"name":"weigh"}"#, false, false),
    ("resources/read", r#"{"uri":"hive://1"}"#, true, false),
    ("resources/read", r#"{"uri":"hive://2"}"#, false, false),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1"]}}"#, true, false),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1","hive://2"]}}"#, false, false),
    ("subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#, true, true),
    ("tools/list", "{}", true, true),
    ("resources/templates/list", "{}", true, true),
    ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"curse"}}"#, true, true),
    ("server/discover", "{}", true, true),
    ("sampling/createMessage", "{}", false, false),
    ("elicitation/create", "{}", false, false),
    ("tasks/get", r#"{"taskId":"1"}"#, false, false),
    ("tasks/cancel", r#"{"taskId":"1"}"#, false, false),
    ("novel/thing", r#"{"name":"weigh"}"#, false, false),
];

fn ask(revision: &str, method: &str, params: &Value) -> Request {
    if revision == "2026-07-28" {
        let asked = modern(7, method, params.clone()).plain();
        // What the header repeats is not always the name.
        return match params["uri"].as_str().or(params["taskId"].as_str()) {
            Some(subject) => asked.instead("Mcp-Name", subject),
            None => asked,
        };
    }
    legacy(revision, &request(7, method, params))
}

#[tokio::test]
async fn the_decision_is_the_same_in_every_revision() {
    for (role, is_keeper) in [(&["keepers"][..], true), (&["guests"], false), (&[], false)] {
        let server = Server::start(hive).await;
        let before = guarded(&server, Dialect::Streamable, steps(authorizer(role))).await;
        for (revision, (method, params, keepers, everybody)) in
            REVISIONS.iter().flat_map(|revision| METHODS.map(|row| (revision, row)))
        {
            let row = format!("{revision} {method} {params} by {role:?}");
            let params: Value = serde_json::from_str(params).unwrap();
            let mut answer = before.send(ask(revision, method, &params)).await;
            let text = answer.text().await;
            let has_arrived = server.seen().iter().any(|seen| seen.json()["method"] == method);
            if everybody || (is_keeper && keepers) {
                assert_ne!(answer.status, 403, "{row}: {text}");
                continue;
            }
            assert_eq!(answer.status, 403, "{row}: {text}");
            assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"Unauthorized"}}"#, "{row}");
            assert!(!has_arrived, "{row}");
        }
    }
}

#[tokio::test]
async fn what_may_be_done_arrives_in_every_revision() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    for revision in REVISIONS {
        for (method, params) in
            [("tools/call", json!({"name": "weigh"})), ("resources/read", json!({"uri": "hive://1"}))]
        {
            let answer = before.send(ask(revision, method, &params)).await;
            assert_eq!(answer.status, 200, "{revision} {method}");
            assert!(server.seen().iter().any(|seen| seen.json()["method"] == method), "{revision} {method}");
        }
    }
}
