//! How much one session may watch, and what the server hears of that.

use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{Request, request};

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
