//! How much one session may watch, and what the server hears of that.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{Request, call, request};

/// Asks for a change of what a session watches, before a server that agrees to everything it is asked.
async fn change(setup: &Setup, server: &mut Server, session: &str, method: &str, uri: &str) -> Value {
    let post = Request::post(&request(1, method, &json!({"uri": uri}))).plain().in_session(session);
    let agreeing = async {
        loop {
            let message = server.expect(method).await;
            server.answer(&message, &json!({})).await;
        }
    };
    let mut answer = tokio::select! {
        answer = setup.send(post) => answer,
        never = agreeing => never,
    };
    answer.json().await
}

async fn watch(setup: &Setup, server: &mut Server, session: &str, uri: &str) -> Value {
    change(setup, server, session, "resources/subscribe", uri).await
}

#[tokio::test]
async fn a_session_watches_so_many_resources_and_no_more() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let other = setup.session("2025-11-25").await;
    for number in 0..256 {
        let answer = watch(&setup, &mut server, &session, &format!("hive://{number}")).await;
        assert_eq!(answer["result"], json!({}), "{number}");
    }
    let refused = watch(&setup, &mut server, &session, "hive://256").await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32602)));
    assert_eq!(watch(&setup, &mut server, &session, "hive://0").await["result"], json!({}), "it watches that already");
    assert_eq!(watch(&setup, &mut server, &other, "hive://256").await["result"], json!({}), "others have their own");
    // Whoever watches less may watch something else, and what was refused took no room.
    change(&setup, &mut server, &session, "resources/unsubscribe", "hive://0").await;
    assert_eq!(watch(&setup, &mut server, &session, "hive://257").await["result"], json!({}));
    assert_eq!(watch(&setup, &mut server, &session, "hive://258").await["error"]["code"], -32602);
    let long = format!("hive://{}", "x".repeat(9 << 10));
    assert_eq!(watch(&setup, &mut server, &other, &long).await["error"]["code"], -32602);
}

#[tokio::test]
async fn trap_23_a_server_that_follows_is_told_all_that_is_watched_however_much_that_is() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let other = setup.session("2025-11-25").await;
    let mut watched = BTreeSet::new();
    for number in 0..300 {
        let (uri, session) = (format!("hive://{number}"), if number % 2 == 0 { &session } else { &other });
        assert_eq!(watch(&setup, &mut server, session, &uri).await["result"], json!({}));
        watched.insert(uri);
    }
    let level = request(1, "logging/setLevel", &json!({"level": "debug"}));
    assert_eq!(setup.send(Request::post(&level).plain().in_session(&session)).await.status, 200);
    server.expect("logging/setLevel").await;
    drop(server);
    let mut server = setup.server().await;
    server.agree().await;
    let mut told = BTreeSet::new();
    for _ in 0..300 {
        let message = server.expect("resources/subscribe").await;
        told.insert(message["params"]["uri"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, watched);
    assert_eq!(server.expect("logging/setLevel").await["params"]["level"], "debug");
}

#[tokio::test]
async fn the_server_is_told_of_all_that_ends_with_a_session_however_much_that_is() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    for number in 0..150 {
        watch(&setup, &mut server, &session, &format!("hive://{number}")).await;
    }
    let (mut streams, mut asked) = (Vec::new(), BTreeSet::new());
    for begin in [0, 50, 100] {
        let calls = (begin..begin + 50).map(|id| Request::post(&call(id, "slow")).in_session(&session));
        let (begun, ()) = tokio::join!(join_all(calls.map(|call| setup.send(call))), async {
            for _ in 0..50 {
                asked.insert(server.expect("tools/call").await["id"].as_u64().unwrap());
            }
        });
        streams.extend(begun);
    }
    assert_eq!(setup.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    let (mut cancelled, mut forgotten) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..300 {
        let message = server.read().await;
        let params = &message["params"];
        match message["method"].as_str().unwrap() {
            "notifications/cancelled" => cancelled.insert(params["requestId"].as_u64().unwrap()),
            "resources/unsubscribe" => forgotten.insert(params["uri"].as_str().unwrap().to_owned()),
            other => panic!("{other}"),
        };
    }
    assert_eq!((cancelled, forgotten.len()), (asked, 150));
}
