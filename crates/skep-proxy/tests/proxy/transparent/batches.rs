//! Several messages at once, before a server that speaks HTTP itself.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::server::{Before, Server, reply, with_sessions};
use crate::http::{Request, call, initialize};

#[tokio::test]
async fn a_server_that_has_not_agreed_to_batches_gets_their_messages_one_by_one() {
    let server = Server::start(|seen| {
        let message = seen.json();
        if seen.method == "OPTIONS" || message["id"].is_null() {
            return reply(202, &[], "");
        }
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"of": message["params"]["name"]}});
        match message["params"]["name"].as_str() {
            Some("streamed") => reply(200, &[("content-type", "text/event-stream")], format!("data: {answer}\n\n")),
            _ => reply(200, &[("content-type", "application/json")], answer.to_string()),
        }
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let mut answer = before.send(Request::post(&json!([call("a", "plain"), note, call(2, "streamed")]))).await;
    let result = |id: Value, name: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"of": name}});
    assert_eq!(answer.json().await, json!([result(json!("a"), "plain"), result(json!(2), "streamed")]));
    let mut seen: Vec<_> =
        server.seen().iter().map(|seen| seen.json()["method"].as_str().unwrap().to_owned()).collect();
    seen.sort();
    assert_eq!(seen, ["notifications/x", "tools/call", "tools/call"]);
    assert_eq!(before.send(Request::post(&json!([note]))).await.status, 202);
}

#[tokio::test]
async fn a_server_that_has_agreed_to_batches_gets_them() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-03-26"))).await;
    server.seen();
    let batch = json!([call(1, "x"), call(2, "y")]);
    before.send(Request::post(&batch).in_session("a-0")).await;
    assert_eq!(server.seen()[0].json(), batch);
}
