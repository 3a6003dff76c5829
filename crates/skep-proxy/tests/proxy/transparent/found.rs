//! Servers that somebody says to speak streamable HTTP, and that speak HTTP+SSE or nothing.

use serde_json::json;
use skep_proxy::transparent::Dialect;

use super::dialled::{Streams, on_sse};
use super::server::{Before, Server, reply, with_sessions};
use crate::http::{Request, call, initialize, modern};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// Begins a session and asks something in it; what the server tells is the number of its stream.
async fn ask_in_session(before: &Before) -> u64 {
    let mut opened = before.send(Request::post(&initialize("2025-06-18"))).await;
    assert_eq!(opened.status, 200);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(opened.message().await.unwrap()["result"]["protocolVersion"], "2025-06-18");
    let mut answer = before.send(Request::post(&call(1, "t")).in_session(&session)).await;
    answer.message().await.unwrap()["result"]["session"].as_u64().unwrap()
}

async fn ask_alone(before: &Before) -> u64 {
    let mut answer = before.send(modern("x", "tools/call", json!({"name": "t"}))).await;
    assert_eq!(answer.status, 200);
    answer.json().await["result"]["session"].as_u64().unwrap()
}

#[tokio::test]
async fn a_server_on_the_older_transport_is_found_out_whatever_somebody_says() {
    // A server of ours has its stream where such servers have it, and one of somebody else where it is said to be.
    for is_remote in [false, true] {
        for is_first_alone in [false, true] {
            let streams = Streams::default();
            let server = Server::start(on_sse(&streams)).await;
            let before = if is_remote {
                Before::remote(Dialect::Streamable, &format!("http://{}/sse", server.address)).await
            } else {
                Before::local(Dialect::Streamable, &server.address).await
            };
            // The first stream is the one by which it was found out.
            let first = if is_first_alone { ask_alone(&before).await } else { ask_in_session(&before).await };
            assert_eq!(first, 1, "{is_remote} {is_first_alone}");
            server.seen();
            assert_eq!((ask_in_session(&before).await, ask_alone(&before).await), (2, 3));
            let asked: Vec<String> = server.seen().iter().map(|seen| seen.json()["method"].to_string()).collect();
            assert!(!asked.contains(&"\"server/discover\"".to_owned()), "what was found out is known: {asked:?}");
            let health = before.send(Request::new("GET", "/health")).await.json().await;
            assert_eq!(health["era"]["verdict"], "legacy");
            // A client of its own transport gets addresses that it can reach.
            let mut stream = before.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await;
            assert_eq!(stream.event().await.unwrap(), "event: endpoint\ndata: /messages?sessionId=4\n\n");
            let post = Request::new("POST", "/messages?sessionId=4").header("Content-Type", "application/json");
            assert_eq!(before.send(post.body(call(5, "t").to_string())).await.status, 202);
            assert_eq!(stream.message().await.unwrap()["result"]["session"], 4);
        }
    }
}

#[tokio::test]
async fn a_server_that_speaks_nothing_is_told_of_and_not_asked_again_and_again() {
    for (status, headers, body) in
        [(404, &[][..], "no such page"), (405, &[], ""), (404, &JSON, r#"{"detail":"Not Found"}"#), (400, &JSON, "{}")]
    {
        let server = Server::start(move |seen| match seen.method.as_str() {
            "OPTIONS" => reply(204, &[], ""),
            _ => reply(status, headers, body),
        })
        .await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        server.seen();
        for number in 0..2 {
            let mut answer = before.send(modern("x", "tools/list", json!({}))).await;
            assert_eq!(answer.status, 502, "{status} {body}");
            let answer = answer.json().await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32603)));
            let told = answer["error"]["message"].as_str().unwrap();
            assert!(told.contains("no MCP server at this address") && told.contains(&status.to_string()), "{told}");
            let gets = server.seen().iter().filter(|seen| seen.method == "GET").count();
            assert_eq!(gets, if number == 0 { 2 } else { 0 }, "{status} {body}");
        }
        let mut refused = before.send(Request::post(&initialize("2025-11-25"))).await;
        assert_eq!((refused.status, refused.text().await.as_str()), (status, body), "its own words");
    }
}

#[tokio::test]
async fn a_server_that_takes_the_place_of_one_on_the_older_transport_is_found_out_as_well() {
    let server = Server::start(on_sse(&Streams::default())).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    ask_alone(&before).await;
    server.replace(with_sessions("a"));
    let mut answer = before.send(modern("x", "tools/list", json!({}))).await;
    assert_eq!(answer.json().await["result"]["session"], "a-0");

    let server = Server::start(on_sse(&Streams::default())).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    ask_in_session(&before).await;
    server.replace(with_sessions("a"));
    let early = before.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!((early.status, early.header("retry-after")), (503, Some("1")));
    let begun = before.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!(begun.header("mcp-session-id"), Some("a-0"));
}
