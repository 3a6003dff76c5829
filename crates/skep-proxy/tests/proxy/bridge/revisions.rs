//! Clients of older revisions before a process that speaks a newer one.

use serde_json::{Value, json};

use skep_proxy::{Proxy, SessionStore};

use super::server::{Server, Setup, limits};
use crate::http::{Request, call, initialize, request};

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
async fn a_strict_proxy_refuses_a_revision_that_nobody_knows_whatever_is_asked() {
    for is_strict in [false, true] {
        let proxy = |bridge| {
            let proxy = Proxy::streamable(bridge);
            if is_strict { proxy.with_strict_versions() } else { proxy }
        };
        let mut setup = Setup::new(limits(), SessionStore::memory(), proxy).await;
        let (_server, session) = setup.begin().await;
        let asked = |version: &'static str| {
            let named = |request: Request| request.header("MCP-Protocol-Version", version);
            [
                (named(Request::post(&call(1, "t")).in_session(&session)), true),
                (named(Request::post(&initialize("2025-11-25"))), false),
                (named(Request::listen(&session)), false),
                (named(Request::new("DELETE", "/mcp").in_session("nobody")), false),
            ]
        };
        for (request, is_refused_always) in asked("2099-01-01") {
            let told = format!("{request:?}");
            let mut answer = setup.send(request).await;
            let is_refused = is_strict || is_refused_always;
            assert_eq!(answer.status == 400, is_refused, "{told}: {}", answer.status);
            if is_refused {
                let error = answer.json().await["error"].clone();
                assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!("2099-01-01")));
            }
        }
        for (request, _) in asked("2025-11-25").into_iter().skip(1) {
            assert_ne!(setup.send(request).await.status, 400);
        }
    }
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
