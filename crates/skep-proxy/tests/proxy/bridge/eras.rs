//! Which era a message is of, as the server finds out.

use serde_json::json;
use skep_proxy::{BackendEra, Proxy, SessionStore};

use super::server::{Setup, limits};
use crate::http::{Request, call, initialize, modern, with_capabilities};

#[tokio::test]
async fn trap_29_what_says_that_it_has_a_session_is_believed() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let stray = json!({
        "io.modelcontextprotocol/clientInfo": {"name": "x"}, "io.modelcontextprotocol/clientCapabilities": {}
    });
    let log_level = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let with = |meta: &serde_json::Value| {
        let mut message = call(1, "a");
        message["params"]["_meta"] = meta.clone();
        Request::post(&message).plain()
    };
    for post in [
        with(&stray).header("MCP-Protocol-Version", "2025-11-25").in_session(&session),
        with(&stray).header("MCP-Protocol-Version", "2025-11-25"),
        with(&stray).in_session(&session),
        with(&log_level),
    ] {
        let (answer, ()) = tokio::join!(setup.send(post), async {
            let message = server.expect("tools/call").await;
            server.answer(&message, &json!({})).await;
        });
        assert_eq!(answer.status, 200);
    }
    // A handshake is one, whatever its headers and its client say about themselves.
    let mut offer = initialize("2025-11-25");
    offer["params"]["_meta"] = stray;
    let answer = setup.send(Request::post(&offer).header("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("mcp-session-id").is_some());
}

#[tokio::test]
async fn trap_40_events_have_a_name_because_clients_ignore_those_without() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let (mut answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).in_session(&session)), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    let mut background = setup.send(Request::listen(&session)).await;
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    for stream in [&mut answer, &mut background] {
        let event = loop {
            // One that only has an id has nothing to be ignored.
            let event = stream.event().await.unwrap();
            if event.contains("jsonrpc") {
                break event;
            }
        };
        assert!(event.contains("event: message\n"), "{event}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_what_it_does_not_know_is_asked_once_and_its_clients_do_not_queue() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let list = |id: u64| setup.send(modern(id, "tools/list", json!({})).plain());
    let both = async { futures::future::join_all([list(1), list(2)]).await };
    let (answers, ()) = tokio::join!(both, async {
        server.expect("server/discover").await;
        // The question is called off before the handshake is made.
        server.expect("notifications/cancelled").await;
        server.agree().await;
        for _ in 0..2 {
            server.list_no_tools().await;
        }
    });
    for answer in answers {
        assert_eq!(answer.status, 200);
    }
    // It is known from now on.
    let (answer, ()) = tokio::join!(list(3), async {
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn rule_19_a_process_that_ends_while_it_is_asked_has_not_said_what_it_speaks() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let address = setup.address.clone();
    let list = |id: u64| modern(id, "tools/list", json!({})).plain().send(&address);
    let (refused, mut server) = tokio::join!(list(1), async {
        server.expect("server/discover").await;
        drop(server);
        // Whether it has sessions is asked of the one in its place, in words that no other era has.
        let mut server = setup.server().await;
        let asked = server.expect("initialize").await;
        let error = json!({"code": -32601, "message": "Method not found"});
        server.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
        server
    });
    assert_eq!(refused.status, 502);
    let (answer, ()) = tokio::join!(list(2), async {
        server.tell_versions().await;
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_process_that_ends_because_it_was_asked_is_taken_for_one_of_sessions_when_the_next_one_takes_a_handshake() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let list = modern(1, "tools/list", json!({})).plain();
    let address = setup.address.clone();
    let (answer, ()) = tokio::join!(list.send(&address), async {
        server.expect("server/discover").await;
        drop(server);
        let mut server = setup.server().await;
        server.agree().await;
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_process_that_refuses_the_handshake_is_asked_again_what_it_speaks() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let list = |id: u64| setup.send(modern(id, "tools/list", json!({})).plain());
    let error = |asked: &serde_json::Value| json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32603, "message": "later"}});
    let (refused, ()) = tokio::join!(list(1), async {
        for method in ["server/discover", "initialize"] {
            let asked = server.expect(method).await;
            server.write(&error(&asked)).await;
        }
    });
    assert_eq!(refused.status, 502);
    let (answer, ()) = tokio::join!(list(2), async {
        server.tell_versions().await;
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn rule_10_what_a_process_wants_repeated_is_for_one_client_and_one_call() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    setup.speak_modern(&mut server).await;
    let call = |id: u32, state: Option<&str>| {
        let mut params = json!({"name": "a", "arguments": {"hive": 3}});
        if let Some(state) = state {
            params["requestState"] = json!(state);
            params["inputResponses"] = json!({"q": {"roots": []}});
        }
        with_capabilities(id, "tools/call", params, &json!({"roots": {}})).header("Authorization", "Bearer a")
    };
    let (mut asked, ()) = tokio::join!(setup.send(call(1, None)), async {
        let message = server.expect("tools/call").await;
        let result = json!({"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}, "requestState": "own"});
        server.answer(&message, &result).await;
    });
    let state = asked.json().await["result"]["requestState"].as_str().unwrap().to_owned();
    assert!(state.starts_with("sk1."), "{state}");
    for refused in [
        call(2, Some("own")),
        call(2, Some(&format!("{state}A"))),
        call(2, Some(&state)).instead("Authorization", "Bearer b"),
    ] {
        assert_eq!(setup.send(refused).await.json().await["error"]["code"], -32602);
    }
    // The process heard nothing of those: this is what comes next.
    let (mut done, ()) = tokio::join!(setup.send(call(3, Some(&state))), async {
        let message = server.expect("tools/call").await;
        assert_eq!(message["params"]["requestState"], "own");
        server.answer(&message, &json!({"content": []})).await;
    });
    assert_eq!(done.json().await["result"], json!({"content": [], "resultType": "complete"}));
}

#[tokio::test]
async fn a_process_of_an_era_that_somebody_names_is_not_asked_for_it() {
    let of_era = async |era| {
        let proxy = |bridge: std::sync::Arc<skep_proxy::stdio::Bridge>| {
            bridge.say_era(era);
            Proxy::streamable(bridge)
        };
        let mut setup = Setup::new(limits(), SessionStore::memory(), proxy).await;
        let server = setup.server().await;
        (setup, server)
    };
    let list = || modern(1, "tools/list", json!({})).plain();
    let (setup, mut server) = of_era(BackendEra::Legacy).await;
    let (answer, ()) = tokio::join!(setup.send(list()), async {
        server.agree().await;
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
    let (setup, mut server) = of_era(BackendEra::Modern).await;
    let (answer, ()) = tokio::join!(setup.send(list()), async {
        server.list_no_tools().await;
    });
    assert_eq!(answer.status, 200);
    // A client of sessions is helped without a handshake that the process would have to refuse first.
    let (opened, ()) = tokio::join!(setup.send(Request::post(&initialize("2025-11-25"))), async {
        server.tell_versions().await;
    });
    assert!(opened.status == 200 && opened.header("mcp-session-id").is_some());
    let health = setup.send(Request::new("GET", "/health")).await.json().await;
    assert_eq!(health["era"]["verdict"], "modern", "{health}");
}
