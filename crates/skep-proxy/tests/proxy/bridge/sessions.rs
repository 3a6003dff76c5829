//! Sessions and the handshake that all of them share.

use serde_json::json;
use skep_proxy::Limits;

use super::server::{Setup, limits};
use crate::http::{Request, call, initialize, request};

#[tokio::test]
async fn trap_15_many_clients_shake_hands_and_the_server_sees_one() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..20 {
        let version = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"][number % 4];
        let address = setup.address.clone();
        clients.spawn(async move { (version, Request::post(&initialize(version)).plain().send(&address).await) });
    }
    server.agree().await;
    let mut sessions = std::collections::HashSet::new();
    while let Some(joined) = clients.join_next().await {
        let (version, mut response) = joined.unwrap();
        let session = response.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(response.json().await["result"]["protocolVersion"], version);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(setup.send(Request::post(&initialized).in_session(&session)).await.status, 202);
        sessions.insert(session);
    }
    assert_eq!(sessions.len(), 20);
    let session = sessions.iter().next().unwrap();
    let (_, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).in_session(session)), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
}

#[tokio::test]
async fn trap_16_a_handshake_survives_the_client_that_began_it() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let address = setup.address.clone();
    let first = tokio::spawn(async move { Request::post(&initialize("2025-11-25")).send(&address).await });
    let asked = server.expect("initialize").await;
    first.abort();
    server.answer(&asked, &json!({"protocolVersion": "2025-11-25"})).await;
    server.expect("notifications/initialized").await;
    assert!(!setup.session("2025-06-18").await.is_empty());
}

#[tokio::test]
async fn trap_16_a_handshake_that_was_refused_is_made_again_by_the_next_client() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let (mut refused, ()) = tokio::join!(setup.send(Request::post(&initialize("2025-11-25")).plain()), async {
        let asked = server.expect("initialize").await;
        let error = json!({"code": 5, "message": "not now"});
        server.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    });
    assert_eq!(refused.json().await["error"], json!({"code": 5, "message": "not now"}));
    assert_eq!(refused.header("mcp-session-id"), None);
    let (session, _) = tokio::join!(setup.session("2025-11-25"), server.agree());
    assert!(!session.is_empty());
}

#[tokio::test]
async fn what_clients_can_be_asked_for_is_not_promised_in_their_name() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let mut offer = initialize("2025-11-25");
    offer["params"]["capabilities"] = json!({"sampling": {}, "elicitation": {}, "roots": {}, "experimental": {"x": 1}});
    let (response, request) = tokio::join!(setup.send(Request::post(&offer)), server.agree());
    assert_eq!(response.status, 200);
    assert_eq!(request["params"]["capabilities"], json!({"experimental": {"x": 1}}));
}

#[tokio::test]
async fn trap_10_a_second_stream_ends_the_first() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let mut first = setup.send(Request::listen(&session)).await;
    let mut second = setup.send(Request::listen(&session)).await;
    assert_eq!(first.message().await, None);
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    assert!(second.message().await.is_some());
}

#[tokio::test]
async fn trap_10_what_is_told_to_all_while_streams_come_and_go_harms_nobody() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let told = async {
        for _ in 0..500 {
            server.write(&changed).await;
        }
    };
    let came = async {
        let mut streams = Vec::new();
        for _ in 0..50 {
            // Each takes the place of the one before.
            streams.push(setup.send(Request::listen(&session)).await);
            streams.truncate(4);
        }
        streams
    };
    let ((), streams) = tokio::join!(told, came);
    let ended = setup.session("2025-11-25").await;
    let mut last = setup.send(Request::listen(&ended)).await;
    let (deleted, ()) =
        tokio::join!(setup.send(Request::new("DELETE", "/mcp").in_session(&session)), server.write(&changed));
    assert_eq!(deleted.status, 204);
    assert_eq!(last.message().await, Some(changed.clone()), "others still hear of it");
    drop(streams);
    // And while the proxy stops.
    setup.stop.cancel();
    for _ in 0..100 {
        server.try_write(&changed).await;
    }
    let listener = tokio::time::timeout(crate::http::PATIENCE, &mut setup.listener).await.unwrap();
    listener.unwrap().unwrap();
    let link = tokio::time::timeout(crate::http::PATIENCE, &mut setup.link).await.unwrap();
    link.unwrap().unwrap();
}

#[tokio::test]
async fn trap_11_a_session_ends_with_everything_that_is_its_own() {
    let mut setup = Setup::streamable().await;
    let (_server, session) = setup.begin().await;
    let mut stream = setup.send(Request::listen(&session)).await;
    let delete = || Request::new("DELETE", "/mcp");
    assert_eq!(setup.send(delete()).await.status, 400);
    assert_eq!(setup.send(delete().in_session(&session)).await.status, 204);
    assert_eq!(stream.message().await, None);
    assert_eq!(setup.send(delete().in_session(&session)).await.status, 404);
    let mut gone = setup.send(Request::post(&call(0, "a")).in_session(&session)).await;
    assert_eq!(gone.status, 404);
    assert_eq!(gone.text().await, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32001,"message":"Session not found"}}"#);
    let mut gone = setup.send(Request::listen(&session)).await;
    assert_eq!((gone.status, gone.text().await.contains("\"id\"")), (404, false));
    let get = Request::new("GET", "/mcp").header("Accept", "text/event-stream");
    assert_eq!(setup.send(get.header("MCP-Protocol-Version", "2025-11-25")).await.status, 405);
}

#[tokio::test]
async fn the_level_of_log_messages_is_that_of_the_client_that_wants_most() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let b = setup.session("2025-11-25").await;
    let level = |level: &str| request(3, "logging/setLevel", &json!({"level": level}));
    for (session, wanted, expected) in [(&a, "error", Some("error")), (&b, "alert", None), (&b, "debug", Some("debug"))]
    {
        let mut answer = setup.send(Request::post(&level(wanted)).plain().in_session(session)).await;
        assert_eq!(answer.json().await, json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
        if let Some(expected) = expected {
            assert_eq!(server.expect("logging/setLevel").await["params"]["level"], expected);
        }
    }
    assert_eq!(setup.send(Request::new("DELETE", "/mcp").in_session(&b)).await.status, 204);
    assert_eq!(server.expect("logging/setLevel").await["params"]["level"], "error");
}

#[tokio::test]
async fn requests_without_a_session_are_served_and_need_no_handshake_of_their_own() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let (mut answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain()), async {
        assert_eq!(server.agree().await["params"]["clientInfo"]["name"], "skep");
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({"ok": 1})).await;
    });
    assert_eq!(answer.json().await["result"], json!({"ok": 1}));
    assert_eq!(answer.header("mcp-session-id"), None);
}

#[tokio::test]
async fn batches_are_for_the_one_revision_that_has_them() {
    let mut setup = Setup::streamable().await;
    let (mut server, newer) = setup.begin().await;
    let older = setup.session("2025-03-26").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let batch = json!([call(1, "a"), note, call("1", "b"), 7]);
    let post = |session: &str, batch: &serde_json::Value| Request::post(batch).in_session(session);
    assert_eq!(setup.send(post(&newer, &batch)).await.status, 400);
    // Whoever has agreed to that revision has a session.
    for without in [
        Request::post(&json!([call(1, "a")])),
        Request::post(&json!([call(1, "a")])).header("MCP-Protocol-Version", "2025-03-26"),
    ] {
        let mut refused = setup.send(without).await;
        assert_eq!((refused.status, &refused.json().await["error"]["code"]), (400, &json!(-32600)));
    }
    assert_eq!(setup.send(post(&older, &json!([initialize("2025-03-26")]))).await.status, 400);
    assert_eq!(setup.send(post(&older, &json!([]))).await.status, 400);
    let (mut answer, ()) = tokio::join!(setup.send(post(&older, &batch)), async {
        for _ in 0..3 {
            let message = server.read().await;
            if message["method"] == "tools/call" {
                assert!(message["id"].is_u64(), "the server sees no batch");
                let name = message["params"]["name"].clone();
                server.answer(&message, &name).await;
            }
        }
    });
    let answers = answer.json().await;
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": 1, "result": "a"}));
    assert_eq!(answers[1], json!({"jsonrpc": "2.0", "id": "1", "result": "b"}));
    assert_eq!(answers[2]["error"]["code"], -32600);
    let notes = setup.send(post(&older, &json!([note]))).await;
    assert_eq!(notes.status, 202);
}

#[tokio::test]
async fn what_wants_no_answer_and_is_of_no_session_never_reaches_the_server() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let notes = ["notifications/roots/list_changed", "notifications/cancelled", "initialize"];
    let notes = notes.map(|method| json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}}));
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for message in notes.iter().chain([&reply]) {
        for version in [None, Some("2025-03-26"), Some("2025-11-25")] {
            let post = Request::post(message);
            let post = version.into_iter().fold(post, |post, version| post.header("MCP-Protocol-Version", version));
            let mut refused = setup.send(post).await;
            assert_eq!((refused.status, &refused.json().await["error"]["code"]), (400, &json!(-32600)), "{message}");
        }
        let unknown = Request::post(message).in_session("7d444840-9dc0-11d1-b245-5ffdce74fad2");
        assert_eq!(setup.send(unknown).await.status, 404, "{message}");
    }
    for batch in [json!([notes[0]]), json!([call(1, "a"), notes[0]]), json!([reply])] {
        assert_eq!(setup.send(Request::post(&batch)).await.status, 400, "{batch}");
    }
    let (answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a"))), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200, "requests need no session");
}

#[tokio::test]
async fn sessions_that_never_say_goodbye_make_room_for_others() {
    let mut setup = Setup::with_limits(Limits { sessions_each: 3, ..limits() }).await;
    let (mut server, first) = setup.begin().await;
    let mut stream = setup.send(Request::listen(&first)).await;
    let second = setup.session("2025-11-25").await;
    for _ in 0..50 {
        setup.session("2025-11-25").await;
    }
    assert_eq!(setup.send(Request::listen(&second)).await.status, 404);
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    assert!(stream.message().await.is_some(), "one that is listened to stays while there are others");
    // When all are, it is the one that was idle the longest.
    let others = [setup.session("2025-11-25").await, setup.session("2025-11-25").await];
    let _streams = [setup.send(Request::listen(&others[0])).await, setup.send(Request::listen(&others[1])).await];
    setup.session("2025-11-25").await;
    assert_eq!(stream.message().await, None, "the streams of a session end with it");
    assert_eq!(setup.send(Request::listen(&first)).await.status, 404);
}

#[tokio::test]
async fn what_belongs_to_requests_that_stand_alone_is_unknown_within_a_session() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    for name in ["subscriptions/listen", "server/discover"] {
        let mut answer = setup.send(Request::post(&request(1, name, &json!({}))).plain().in_session(&session)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json().await["error"]["code"], -32601, "{name}");
    }
    let (_, message) =
        tokio::join!(setup.send(Request::post(&call(2, "next")).in_session(&session)), server.expect("tools/call"));
    assert_eq!(message["params"]["name"], "next", "the server has heard of nothing else");
}

#[tokio::test]
async fn a_session_has_a_bounded_number_of_requests_under_way() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let large = "i".repeat(7 << 20);
    let other = setup.session("2025-11-25").await;
    for (session, ids, most) in [(&session, "", 256), (&other, &*large, 2)] {
        let mut under_way = Vec::new();
        for number in 0..most {
            let (stream, message) = tokio::join!(
                setup.send(Request::post(&call(format!("{ids}{number}"), "slow")).in_session(session)),
                server.expect("tools/call")
            );
            assert_eq!(stream.status, 200);
            under_way.push((stream, message));
        }
        let mut refused = setup.send(Request::post(&call("more", "slow")).in_session(session)).await;
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
        let refused = refused.json().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("more"), &json!(-32603)));
        let (_, message) = under_way.pop().unwrap();
        server.answer(&message, &json!({})).await;
        let (stream, _) = tokio::join!(
            setup.send(Request::post(&call("again", "slow")).in_session(session)),
            server.expect("tools/call")
        );
        assert_eq!(stream.status, 200, "one that is answered makes room");
    }
}

#[tokio::test]
async fn tasks_of_a_server_that_clients_share_are_for_nobody() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    let (mut begun, ()) = tokio::join!(setup.send(Request::post(&initialize("2025-11-25")).plain()), async {
        let asked = server.expect("initialize").await;
        let capabilities =
            json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}});
        server.answer(&asked, &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities})).await;
        server.expect("notifications/initialized").await;
    });
    assert_eq!(begun.json().await["result"]["capabilities"], json!({"tools": {}}));
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    for name in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
        for within in [true, false] {
            let post = Request::post(&request(1, name, &json!({"taskId": "t"}))).plain();
            let post = if within { post.in_session(&session) } else { post };
            assert_eq!(setup.send(post).await.json().await["error"]["code"], -32601, "{name}");
        }
    }
    let mut long = call(2, "long");
    long["params"]["task"] = json!({"ttl": 60000});
    let (answer, ()) = tokio::join!(setup.send(Request::post(&long).in_session(&session)), async {
        let asked = server.expect("tools/call").await;
        assert_eq!(asked["params"], call(2, "long")["params"]);
        server.answer(&asked, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
}
