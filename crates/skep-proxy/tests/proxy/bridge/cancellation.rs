//! What nobody waits for any more is called off, under the id that the server knows.

use serde_json::json;
use skep_proxy::Forwarded;

use super::server::Setup;
use super::sse::{begin, post};
use crate::http::{Request, call, modern};

#[tokio::test]
async fn trap_13_a_cancelled_request_is_named_as_the_server_knows_it() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let other = setup.session("2025-06-18").await;
    let mut stream = setup.send(Request::post(&call("mine", "slow")).in_session(&session)).await;
    let message = server.expect("tools/call").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "mine"}});
    // Another session knows no such request, and neither does somebody without one.
    assert_eq!(setup.send(Request::post(&cancel).in_session(&other)).await.status, 202);
    assert_eq!(setup.send(Request::post(&cancel)).await.status, 400);
    assert_eq!(setup.send(Request::post(&cancel).header("MCP-Protocol-Version", "2025-11-25")).await.status, 400);
    assert_eq!(setup.send(Request::post(&cancel).in_session(&session)).await.status, 202);
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], message["id"]);
    assert_eq!(stream.message().await, None, "what is called off has no answer");
}

#[tokio::test]
async fn what_a_session_has_under_way_ends_with_it() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let mut stream = setup.send(Request::post(&call("mine", "slow")).in_session(&session)).await;
    let message = server.expect("tools/call").await;
    assert_eq!(setup.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], message["id"]);
    let told = stream.message().await.unwrap();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!("mine"), &json!(-32603)));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn what_a_client_of_events_has_under_way_ends_with_its_stream() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    let (mut server, stream, path) = begin(&mut setup).await;
    assert_eq!(post(&setup, &path, &call(1, "slow")).await.status, 202);
    let message = server.expect("tools/call").await;
    drop(stream);
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], message["id"]);
}

#[tokio::test]
async fn a_client_that_goes_away_calls_its_modern_request_off() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let stream = setup.send(modern(1, "tools/call", json!({"name": "slow"}))).await;
    let message = server.expect("tools/call").await;
    drop(stream);
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], message["id"]);
}

#[tokio::test]
async fn a_client_that_goes_away_before_the_answer_began_calls_it_off() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let address = setup.address.clone();
    let post = Request::post(&call(1, "slow")).plain().in_session(&session);
    let client = tokio::spawn(async move { post.send(&address).await });
    let message = server.expect("tools/call").await;
    client.abort();
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], message["id"]);
}
