//! Every client gets its own answers, and those of nobody else.

use serde_json::{Value, json};

use super::server::Setup;
use crate::http::{Request, call, modern, request};

#[tokio::test]
async fn trap_1_a_hundred_requests_with_one_id_never_mix() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..100 {
        let message = request(1, "tools/call", &json!({"name": format!("tool-{number}")}));
        let post = if number % 2 == 0 { Request::post(&message) } else { Request::post(&message).in_session(&session) };
        let address = setup.address.clone();
        clients.spawn(async move { (number, post.plain().send(&address).await.json().await) });
    }
    let mut asked = Vec::new();
    for _ in 0..100 {
        asked.push(server.expect("tools/call").await);
    }
    // The last one is answered first.
    for message in asked.iter().rev() {
        server.answer(message, &json!({"echo": message["params"]["name"]})).await;
    }
    while let Some(joined) = clients.join_next().await {
        let (number, answer) = joined.unwrap();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {"echo": format!("tool-{number}")}}));
    }
}

#[tokio::test]
async fn trap_2_a_modern_request_does_not_touch_the_session_it_names() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let post = modern(5, "tools/call", json!({"name": "a"})).in_session(&session);
    let (mut answer, ()) = tokio::join!(setup.send(post), async {
        let message = server.expect("tools/call").await;
        assert_eq!(message["params"]["name"], "a");
        server.answer(&message, &json!({"resultType": "complete"})).await;
    });
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
    assert_eq!(answer.json().await["id"], 5);
    let unknown = modern(6, "tools/call", json!({"name": "a"})).in_session("nobody");
    let (answer, ()) = tokio::join!(setup.send(unknown), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
    // The session goes on as it was.
    let post = Request::post(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).plain().in_session(&session);
    assert_eq!(setup.send(post).await.json().await["id"], 5);
}

#[tokio::test]
async fn trap_3_ids_of_every_shape_come_back_as_they_were() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    for id in ["0", "1", "\"1\"", "-7", "1.50", "12345678901234567890123", "1e3", "\"\\u0061\\/\u{a0}\"", "\"\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let post = Request::post(&Value::Null).plain().in_session(&session).body(body);
        let (mut answer, ()) = tokio::join!(setup.send(post), async {
            let number = server.expect("tools/list").await["id"].to_string();
            server.write_line(&format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#)).await;
        });
        assert_eq!(answer.text().await, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn trap_4_answers_that_nobody_waits_for_are_dropped() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    for line in [
        r#"{"jsonrpc":"2.0","id":"who","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
        "starting up…",
        "{\"not\":\"rpc\"}",
        "{",
        "",
    ] {
        server.write_line(line).await;
    }
    let post = Request::post(&call(1, "a")).plain().in_session(&session);
    let (mut answer, ()) = tokio::join!(setup.send(post), async {
        let message = server.expect("tools/call").await;
        let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"ok": true}}).to_string();
        server.write_line(&format!("DEBUG {text} done")).await;
    });
    assert_eq!(answer.json().await["result"], json!({"ok": true}));
}

#[tokio::test]
async fn trap_41_long_lines_and_rare_characters_survive() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let text = format!("{}\u{a0}\u{200d}\u{fffd}\u{2028}\u{85}", "x".repeat(3 << 20));
    let message = request(1, "tools/call", &json!({"name": text}));
    for post in [Request::post(&message), Request::post(&message).plain()] {
        let (mut answer, ()) = tokio::join!(setup.send(post.in_session(&session)), async {
            let message = server.expect("tools/call").await;
            let name = message["params"]["name"].clone();
            server.answer(&message, &json!({"echo": name})).await;
        });
        let answer = if answer.header("content-type") == Some("application/json") {
            answer.json().await
        } else {
            answer.message().await.unwrap()
        };
        assert_eq!(answer["result"]["echo"], text);
    }
}

#[tokio::test]
async fn members_that_nobody_knows_pass_both_ways_byte_for_byte() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let body = r#"{ "x" : [1.0, 1e2] ,"jsonrpc":"2.0","id":"i","method":"future/thing","params":{"Ä":"\u00e4\/","_meta":{"vendor/key":{"a":null}}}}"#;
    let post = Request::post(&Value::Null).plain().in_session(&session).body(body);
    let (mut answer, ()) = tokio::join!(setup.send(post), async {
        let mut line = String::new();
        tokio::io::AsyncBufReadExt::read_line(server.input(), &mut line).await.unwrap();
        let number = serde_json::from_str::<Value>(&line).unwrap()["id"].to_string();
        assert_eq!(line.trim_end(), body.replace("\"i\"", &number));
        server.write_line(&format!(r#"{{"y":{{ }},"result" : {{"big":1e400}},"jsonrpc":"2.0","id":{number}}}"#)).await;
    });
    assert_eq!(answer.text().await, r#"{"y":{ },"result" : {"big":1e400},"jsonrpc":"2.0","id":"i"}"#);
}
