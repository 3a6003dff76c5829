//! The bridge as HTTP+SSE.

use serde_json::json;
use skep_proxy::Forwarded;

use super::server::{Server, Setup};
use crate::http::{Request, Response, call, initialize, request};

/// Opens a stream, and gives it with the path for messages.
pub(crate) async fn open(setup: &Setup) -> (Response, String) {
    open_at(setup, "/sse").await
}

async fn open_at(setup: &Setup, path: &str) -> (Response, String) {
    let mut stream = setup.send(Request::new("GET", path).header("Accept", "text/event-stream")).await;
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    let event = stream.event().await.unwrap();
    let own = format!("event: endpoint\ndata: http://{}", setup.address);
    let path = event.strip_prefix(&own).unwrap_or_else(|| panic!("{event}")).trim_end().to_owned();
    (stream, path)
}

pub(super) async fn post(setup: &Setup, path: &str, message: &serde_json::Value) -> Response {
    setup.send(Request::new("POST", path).header("Content-Type", "application/json").body(message.to_string())).await
}

pub(crate) async fn begin(setup: &mut Setup) -> (Server, Response, String) {
    let mut server = setup.server().await;
    let (mut stream, path) = open(setup).await;
    let offer = initialize("2024-11-05");
    let (accepted, _) = tokio::join!(post(setup, &path, &offer), server.agree());
    assert_eq!(accepted.status, 202);
    assert_eq!(stream.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
    (server, stream, path)
}

#[tokio::test]
async fn trap_12_clients_do_not_see_each_others_answers() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, mut a, a_path) = begin(&mut setup).await;
    let (mut b, b_path) = open(&setup).await;
    for path in [&a_path, &b_path] {
        assert_eq!(post(&setup, path, &call(1, path)).await.status, 202);
    }
    let asked = [server.expect("tools/call").await, server.expect("tools/call").await];
    for message in asked.iter().rev() {
        server.answer(message, &json!({"for": message["params"]["name"]})).await;
    }
    for (stream, path) in [(&mut a, &a_path), (&mut b, &b_path)] {
        let answer = stream.message().await.unwrap();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {"for": path}}));
    }
    let health = setup.send(Request::new("GET", "/health")).await.json().await;
    assert_eq!((&health["transport"], &health["mcp"]["available"]), (&json!("stdio"), &json!(true)));
    assert_eq!(post(&setup, &a_path, &request(2, "ping", &json!({}))).await.status, 202);
    assert_eq!(a.message().await.unwrap()["id"], 2, "nothing else was said in the meantime");
}

#[tokio::test]
async fn messages_need_a_session_that_is_connected() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, stream, path) = begin(&mut setup).await;
    let text = async |mut response: Response| (response.status, response.text().await);
    let missing = text(post(&setup, "/messages", &call(1, "a")).await).await;
    assert_eq!(missing, (400, "session_id is required\n".to_owned()));
    assert_eq!(post(&setup, "/messages?session_id=nobody", &call(1, "a")).await.status, 404);
    let bad = text(post(&setup, &path, &json!({"jsonrpc": "2.0"})).await).await;
    assert!(bad.0 == 400 && bad.1.starts_with("Error parsing JSON-RPC message: "), "{bad:?}");
    assert_eq!(post(&setup, &path, &json!([call(1, "a")])).await.status, 400);
    assert_eq!(setup.send(Request::new("POST", "/sse")).await.status, 405);
    assert_eq!(setup.send(Request::new("GET", "/messages")).await.status, 405);
    assert_eq!(setup.send(Request::new("GET", "/mcp")).await.status, 404);
    assert_eq!(post(&setup, &path, &call(1, "slow")).await.status, 202);
    server.expect("tools/call").await;
    drop(stream);
    // The session ends with its stream, as soon as the proxy sees that it is gone.
    let ended = async { while post(&setup, &path, &request(2, "ping", &json!({}))).await.status != 404 {} };
    tokio::time::timeout(crate::http::PATIENCE, ended).await.unwrap();
}

#[tokio::test]
async fn the_address_for_messages_is_one_that_the_client_can_reach() {
    let address = async |forwarded: Forwarded| {
        let setup = Setup::sse(forwarded).await;
        let open = Request::new("GET", "/sse")
            .header("X-Forwarded-Host", "pub.example.com")
            .header("X-Forwarded-Proto", "https")
            .header("X-Forwarded-Prefix", "/hive/sse");
        let event = setup.send(open).await.event().await.unwrap();
        let address = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        address.split_once("/messages?session_id=").unwrap().0.replace(&setup.address, "own")
    };
    assert_eq!(address(Forwarded::default()).await, "http://own");
    let trusted = Forwarded { is_trusted: true, prefix: String::new() };
    assert_eq!(address(trusted).await, "https://pub.example.com/hive");
    let prefixed = Forwarded { is_trusted: false, prefix: "own/".to_owned() };
    assert_eq!(address(prefixed).await, "http://own/own");
}

#[tokio::test]
async fn tasks_of_a_server_that_clients_share_are_not_told() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (_server, mut stream, path) = begin(&mut setup).await;
    assert_eq!(post(&setup, &path, &request(3, "tasks/list", &json!({}))).await.status, 202);
    assert_eq!(stream.message().await.unwrap()["error"]["code"], -32601);
}

#[tokio::test]
async fn answers_that_a_client_leaves_unread_are_bounded() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, mut stream, path) = begin(&mut setup).await;
    let mut asked = Vec::new();
    for number in 0..64 {
        assert_eq!(post(&setup, &path, &call(number, "large")).await.status, 202);
        asked.push(server.expect("tools/call").await);
    }
    let text = "x".repeat(1 << 20);
    for message in &asked {
        server.answer(message, &json!({"text": text})).await;
    }
    let mut lost = 0;
    for number in 0..64 {
        let answer = stream.message().await.unwrap();
        assert_eq!(answer["id"], number);
        lost += u32::from(answer["error"]["code"] == -32603);
    }
    assert!((1..64).contains(&lost), "{lost} answers were dropped");
}

#[tokio::test]
async fn what_only_requests_that_stand_alone_say_is_not_for_the_server() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, _stream, path) = begin(&mut setup).await;
    let mut claiming = call(1, "a");
    claiming["params"]["_meta"] = json!({"io.modelcontextprotocol/clientInfo": {"name": "skep"}, "own/key": 1});
    assert_eq!(post(&setup, &path, &claiming).await.status, 202);
    assert_eq!(server.expect("tools/call").await["params"]["_meta"], json!({"own/key": 1}));
}

/// The proxy and a client that speaks the one revision that has batches.
async fn begin_with_batches(setup: &mut Setup) -> (Server, Response, String) {
    let mut server = setup.server().await;
    let (mut stream, path) = open(setup).await;
    let batch = json!([request(1, "ping", &json!({}))]);
    assert_eq!(post(setup, &path, &batch).await.status, 400, "nothing is agreed on yet");
    let offer = initialize("2025-03-26");
    let (accepted, _) = tokio::join!(post(setup, &path, &offer), server.agree());
    assert_eq!(accepted.status, 202);
    assert_eq!(stream.message().await.unwrap()["result"]["protocolVersion"], "2025-03-26");
    (server, stream, path)
}

fn answered(id: u32, result: &serde_json::Value) -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[tokio::test]
async fn a_batch_of_its_revision_is_answered_with_one_event() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, mut stream, path) = begin_with_batches(&mut setup).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let batch = json!([call(1, "a"), request(2, "ping", &json!({})), changed, call(3, "b")]);
    assert_eq!(post(&setup, &path, &batch).await.status, 202);
    for _ in 0..3 {
        let asked = server.read().await;
        if asked["method"] == "tools/call" {
            server.answer(&asked, &json!({"for": asked["params"]["name"]})).await;
        }
    }
    let told = json!([answered(1, &json!({"for": "a"})), answered(2, &json!({})), answered(3, &json!({"for": "b"}))]);
    assert_eq!(stream.message().await.unwrap(), told);
    // What wants no answer gets none.
    assert_eq!(post(&setup, &path, &json!([changed])).await.status, 202);
    server.expect("notifications/roots/list_changed").await;
    assert_eq!(post(&setup, &path, &json!([initialize("2025-03-26")])).await.status, 400);
    assert_eq!(post(&setup, &path, &request(4, "ping", &json!({}))).await.status, 202);
    assert_eq!(stream.message().await.unwrap(), answered(4, &json!({})));
}

#[tokio::test]
async fn a_call_that_is_called_off_leaves_no_hole_in_the_answers_to_its_batch() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, mut stream, path) = begin_with_batches(&mut setup).await;
    assert_eq!(post(&setup, &path, &json!([call(1, "a"), call(2, "b")])).await.status, 202);
    let asked = [server.expect("tools/call").await, server.expect("tools/call").await];
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(post(&setup, &path, &cancelled).await.status, 202);
    server.expect("notifications/cancelled").await;
    let other = asked.iter().find(|asked| asked["params"]["name"] == "b").unwrap();
    server.answer(other, &json!({})).await;
    assert_eq!(stream.message().await.unwrap(), json!([answered(2, &json!({}))]));
}

#[tokio::test]
async fn both_transports_are_at_one_address() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let (mut stream, path) = open_at(&setup, "/mcp").await;
    assert!(path.starts_with("/mcp?sessionId="), "{path}");
    assert_eq!(post(&setup, &path, &initialize("2024-11-05")).await.status, 202);
    assert_eq!(stream.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
    // Both ask under the same id, and each gets its own answer on its own way.
    let streamable = Request::post(&call(1, "streamable")).in_session(&session).plain();
    let older = call(1, "older");
    let (accepted, mut answer, ()) = tokio::join!(post(&setup, &path, &older), setup.send(streamable), async {
        for _ in 0..2 {
            let asked = server.expect("tools/call").await;
            let link = json!({"type": "resource_link", "name": asked["params"]["name"], "uri": "u"});
            server.answer(&asked, &json!({"content": [link]})).await;
        }
    });
    assert_eq!(accepted.status, 202);
    assert_eq!(answer.json().await["result"]["content"][0]["name"], "streamable");
    let told = json!({"content": [{"type": "text", "text": "older: u"}]});
    assert_eq!(stream.message().await.unwrap(), json!({"jsonrpc": "2.0", "id": 1, "result": told}));
    assert_eq!(post(&setup, "/mcp?sessionId=nobody", &call(2, "a")).await.status, 404);
    drop(stream);
    // The session ends with its stream, as soon as the proxy sees that it is gone.
    let ended = async { while post(&setup, &path, &request(2, "ping", &json!({}))).await.status != 404 {} };
    tokio::time::timeout(crate::http::PATIENCE, ended).await.unwrap();
}
