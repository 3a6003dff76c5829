//! Sessions that the server begins and the proxy knows.

use serde_json::json;
use skep_proxy::transparent::Dialect;

use super::server::{Before, Server, reply, with_sessions};
use crate::http::{Request, call, initialize, modern};

#[tokio::test]
async fn a_session_is_known_from_its_handshake_to_its_end() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let first = before.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!(first.header("mcp-session-id"), Some("a-0"));
    let mut answer = before.send(Request::post(&call(1, "x")).in_session("a-0")).await;
    assert_eq!(answer.json().await["result"]["session"], "a-0");
    let delete = Request::new("DELETE", "/mcp").in_session("a-0");
    assert_eq!(before.send(delete.clone()).await.status, 204);
    server.seen();
    let mut gone = before.send(Request::post(&call(7, "x")).in_session("a-0")).await;
    assert_eq!((gone.status, gone.json().await["id"].clone()), (404, json!(7)));
    assert_eq!(before.send(delete).await.status, 404);
    assert_eq!(server.seen().len(), 0, "the server is not asked about sessions that have ended");
}

#[tokio::test]
async fn batches_pass_in_the_revision_that_has_them() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-03-26"))).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    server.seen();
    let batch = json!([call(1, "x"), call(2, "y")]);
    assert_eq!(before.send(Request::post(&batch).in_session("a-1")).await.status, 400);
    assert_eq!(server.seen().len(), 0);
    before.send(Request::post(&batch).in_session("a-0")).await;
    assert_eq!(server.seen().pop().unwrap().json(), batch);
    for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
        let mut alone = call(3, "z");
        alone["params"]["_meta"] = json!({format!("io.modelcontextprotocol/{key}"): {}});
        let batch = json!([call(1, "x"), alone]);
        assert_eq!(before.send(Request::post(&batch).in_session("a-0")).await.status, 400, "{key}");
    }
    assert_eq!(server.seen().len(), 0);
    // Without a session a client is of the revision that it names. The one with batches names none yet.
    for (version, expected) in
        [(None, true), (Some("2025-03-26"), true), (Some("2025-06-18"), false), (Some("2025-03-27"), false)]
    {
        let post = Request::post(&batch);
        let post = version.into_iter().fold(post, |post, version| post.header("MCP-Protocol-Version", version));
        let status = before.send(post).await.status;
        assert_eq!(status != 400, expected, "{version:?}: {status}");
    }
}

#[tokio::test]
async fn trap_17_a_handshake_that_names_an_old_session_is_passed_on_without_it() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    for (stale, fresh) in [("a-0", "a-1"), ("nobody", "a-2")] {
        server.seen();
        let again = before.send(Request::post(&initialize("2025-11-25")).in_session(stale)).await;
        assert_eq!((again.status, again.header("mcp-session-id")), (200, Some(fresh)));
        assert_eq!(server.seen().pop().unwrap().header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn trap_30_words_of_the_other_era_open_no_door() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    let forged = |session: &str| {
        let mut message = call(5, "x");
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/clientInfo": {"name": "x"}, "io.modelcontextprotocol/clientCapabilities": {}
        });
        Request::post(&message).header("MCP-Protocol-Version", "2025-11-25").in_session(session)
    };
    server.seen();
    assert_eq!(before.send(forged("nobody")).await.status, 404);
    assert_eq!(server.seen().len(), 0, "the session is looked at, whatever the message says about itself");
    // A session that moved to another server is still found there.
    server.replace(with_sessions("b"));
    let mut answer = before.send(forged("a-0")).await;
    assert_eq!(answer.json().await["result"]["session"], "b-0");
    // What stands alone has no session, and none is touched by naming one.
    let delete = Request::new("DELETE", "/mcp").in_session("a-0");
    assert_eq!(before.send(delete.clone().header("MCP-Protocol-Version", "2026-07-28")).await.status, 405);
    assert_eq!(before.send(forged("a-0")).await.status, 200);
    assert_eq!(before.send(delete).await.status, 204);
    assert_eq!(before.send(forged("a-0")).await.status, 404);
}

#[tokio::test]
async fn what_stands_alone_begins_no_session_whatever_its_server_says() {
    let server = Server::start(|seen| {
        if seen.method != "POST" {
            return reply(204, &[], "");
        }
        let message = seen.json();
        let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        reply(200, &[("content-type", "application/json"), ("mcp-session-id", "odd")], answer)
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    for name in ["none", "odd"] {
        let answer = before.send(modern(1, "tools/list", json!({})).in_session(name)).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
    }
    server.seen();
    assert_eq!(before.send(Request::post(&call(2, "x")).in_session("odd")).await.status, 404);
    assert_eq!(server.seen().len(), 0);
}
