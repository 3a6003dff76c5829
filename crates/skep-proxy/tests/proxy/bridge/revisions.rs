//! Clients of older revisions before a process that speaks a newer one.

use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{Request, call, request};

/// What a tool answers that knows all words.
fn content() -> Value {
    json!({"content": [
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "name": "n", "uri": "u:1"},
    ]})
}

/// The kinds of content that a client gets.
async fn kinds(setup: &Setup, server: &mut Server, post: Request) -> String {
    let (mut answer, ()) = tokio::join!(setup.send(post.plain()), async {
        let asked = server.read().await;
        server.answer(&asked, &content()).await;
    });
    let answer = answer.json().await;
    let blocks = answer["result"]["content"].as_array().unwrap();
    blocks.iter().map(|block| block["type"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn results_are_in_the_words_of_the_session() {
    let mut setup = Setup::streamable().await;
    let (mut server, newest) = setup.begin().await;
    for (version, expected) in
        [("2024-11-05", "resource text"), ("2025-03-26", "audio text"), ("2025-06-18", "audio resource_link")]
    {
        let session = setup.session(version).await;
        let post = Request::post(&call(1, "t")).in_session(&session);
        assert_eq!(kinds(&setup, &mut server, post).await, expected, "{version}");
    }
    let post = || Request::post(&call(1, "t"));
    assert_eq!(kinds(&setup, &mut server, post().in_session(&newest)).await, "audio resource_link");
    // Without a session it is the revision that a request names, or else the one that is assumed.
    assert_eq!(kinds(&setup, &mut server, post()).await, "audio text");
    let named = post().header("MCP-Protocol-Version", "2025-11-25");
    assert_eq!(kinds(&setup, &mut server, named).await, "audio resource_link");
}

#[tokio::test]
async fn an_older_process_hears_only_words_that_it_knows() {
    for (version, is_told) in [("2025-03-26", false), ("2025-11-25", true)] {
        let mut setup = Setup::streamable().await;
        let mut server = setup.server().await;
        let (session, ()) = tokio::join!(setup.session("2025-11-25"), async {
            let offer = server.expect("initialize").await;
            server.answer(&offer, &json!({"protocolVersion": version, "capabilities": {}})).await;
            server.expect("notifications/initialized").await;
        });
        let complete = request(1, "completion/complete", &json!({"ref": {}, "context": {}}));
        let post = Request::post(&complete).in_session(&session);
        let (_, asked) = tokio::join!(setup.send(post), async {
            let asked = server.expect("completion/complete").await;
            server.answer(&asked, &json!({})).await;
            asked
        });
        assert_eq!(asked["params"].get("context").is_some(), is_told, "{version}");
    }
}
