//! What the server says by itself reaches those it is for.

use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Authorizer, CedarSettings, Chain, Middleware, Step};
use skep_proxy::{Proxy, SessionStore};

use super::server::{Server, Setup, limits};
use crate::http::{Request, call, modern, request};

fn with_token(id: u64, token: &Value) -> Value {
    request(id, "tools/call", &json!({"name": "slow", "_meta": {"progressToken": token}}))
}

fn progress(token: &Value, progress: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress}})
}

/// Asks for something, so that everything that was said before has been dealt with.
async fn settle(setup: &Setup, server: &mut Server, session: &str) {
    let post = Request::post(&call("settle", "now")).plain().in_session(session);
    let ((), _) = tokio::join!(
        async {
            let message = server.expect("tools/call").await;
            server.answer(&message, &json!({})).await;
        },
        setup.send(post)
    );
}

#[tokio::test]
async fn trap_5_progress_goes_to_the_request_that_asked_for_it() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let b = setup.session("2025-11-25").await;
    let token = json!("t");
    let mut first = setup.send(Request::post(&with_token(1, &token)).in_session(&a)).await;
    let asked_first = server.expect("tools/call").await;
    let mut second = setup.send(Request::post(&with_token(1, &token)).in_session(&b)).await;
    let asked_second = server.expect("tools/call").await;
    let tokens = [&asked_first, &asked_second].map(|message| message["params"]["_meta"]["progressToken"].clone());
    assert_ne!(tokens[0], tokens[1]);
    server.write(&progress(&tokens[0], 1)).await;
    server.write(&progress(&tokens[1], 2)).await;
    server.write(&progress(&token, 3)).await;
    server.answer(&asked_first, &json!({"a": 1})).await;
    server.write(&progress(&tokens[0], 4)).await;
    server.answer(&asked_second, &json!({"b": 1})).await;
    assert_eq!(first.message().await.unwrap(), progress(&token, 1));
    assert_eq!(first.message().await.unwrap()["result"], json!({"a": 1}));
    assert_eq!(first.message().await, None);
    assert_eq!(second.message().await.unwrap(), progress(&token, 2));
    assert_eq!(second.message().await.unwrap()["result"], json!({"b": 1}));
}

#[tokio::test]
async fn a_numeric_token_comes_back_as_a_number() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let mut stream = setup.send(Request::post(&with_token(1, &json!(7))).in_session(&a)).await;
    let asked = server.expect("tools/call").await;
    server.write(&progress(&asked["params"]["_meta"]["progressToken"], 1)).await;
    assert_eq!(stream.message().await.unwrap(), progress(&json!(7), 1));
}

#[tokio::test]
async fn trap_6_updates_reach_those_who_watch() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let (b, c) = (setup.session("2025-11-25").await, setup.session("2025-11-25").await);
    let mut streams = Vec::new();
    for session in [&a, &b, &c] {
        streams.push(setup.send(Request::listen(session)).await);
    }
    let subscribe = |id: u64| request(id, "resources/subscribe", &json!({"uri": "hive://1"}));
    let (mut answer, ()) = tokio::join!(setup.send(Request::post(&subscribe(1)).plain().in_session(&a)), async {
        let message = server.expect("resources/subscribe").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.json().await["result"], json!({}));
    // The server knows already.
    let mut second = setup.send(Request::post(&subscribe(2)).plain().in_session(&b)).await;
    assert_eq!(second.json().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));

    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "hive://1"}});
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.write(&updated).await;
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "a secret of somebody"}})).await;
    server.write(&changed).await;
    for stream in &mut streams[..2] {
        assert_eq!(stream.message().await.unwrap(), updated);
    }
    for stream in &mut streams {
        assert_eq!(stream.message().await.unwrap(), changed);
    }

    let unsubscribe = |id: u64| request(id, "resources/unsubscribe", &json!({"uri": "hive://1"}));
    let mut alone = setup.send(Request::post(&unsubscribe(3)).plain().in_session(&a)).await;
    assert_eq!(alone.json().await["result"], json!({}));
    let (_, ()) = tokio::join!(setup.send(Request::new("DELETE", "/mcp").in_session(&b)), async {
        server.expect("resources/unsubscribe").await;
    });
}

#[tokio::test]
async fn trap_6_whoever_may_not_watch_is_not_told() {
    let policies = vec![r#"permit(principal, action, resource == Resource::"hive://1");"#.to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let steps = vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, Step::Authorize(authorizer)];
    let chain = Middleware::new(Chain::new(steps));
    let guarded = |bridge| Proxy::streamable(bridge).with_middleware(chain);
    let mut setup = Setup::new(limits(), SessionStore::memory(), guarded).await;
    let (mut server, session) = setup.begin().await;
    let mut stream = setup.send(Request::listen(&session)).await;
    let subscribe = |id: u64, uri: &str| {
        let message = request(id, "resources/subscribe", &json!({"uri": uri}));
        setup.send(Request::post(&message).plain().in_session(&session))
    };
    assert_eq!(subscribe(1, "hive://2").await.status, 403);
    let listen = |uris: Value| {
        setup.send(modern(9, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})))
    };
    for uris in [json!(["hive://2"]), json!(["hive://1", "hive://2"]), json!("hive://2")] {
        let mut refused = listen(uris.clone()).await;
        let told = json!({"jsonrpc": "2.0", "id": 9, "error": {"code": 403, "message": "Unauthorized"}});
        assert_eq!((refused.status, refused.json().await), (403, told), "{uris}");
    }
    // The server hears of the other one only.
    let (mut answer, ()) = tokio::join!(subscribe(2, "hive://1"), async {
        let message = server.expect("resources/subscribe").await;
        assert_eq!(message["params"]["uri"], "hive://1");
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.json().await["result"], json!({}));
    let updated =
        |uri: &str| json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
    server.write(&updated("hive://2")).await;
    server.write(&updated("hive://1")).await;
    assert_eq!(stream.message().await.unwrap(), updated("hive://1"));
}

#[tokio::test]
async fn trap_7_a_refused_subscription_is_asked_for_again() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let subscribe = request(1, "resources/subscribe", &json!({"uri": "hive://1"}));
    for _ in 0..2 {
        let (mut answer, ()) = tokio::join!(setup.send(Request::post(&subscribe).plain().in_session(&a)), async {
            let message = server.expect("resources/subscribe").await;
            let error = json!({"code": -32002, "message": "no"});
            server.write(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).await;
        });
        assert_eq!(answer.json().await["error"]["code"], -32002);
    }
    let mut stream = setup.send(Request::listen(&a)).await;
    server
        .write(&json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "hive://1"}}))
        .await;
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn trap_9_questions_of_the_server_reach_no_client_and_are_refused_at_once() {
    let mut setup = Setup::streamable().await;
    let (mut server, a) = setup.begin().await;
    let mut background = setup.send(Request::listen(&a)).await;
    let mut stream = setup.send(Request::post(&call(1, "asks")).in_session(&a)).await;
    let asked = server.expect("tools/call").await;
    server.write(&json!({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}})).await;
    let refused = server.read().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("s1"), &json!(-32601)));
    server.write(&json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})).await;
    assert_eq!(server.read().await, json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    server.answer(&asked, &json!({})).await;
    assert_eq!(stream.message().await.unwrap()["id"], 1);
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    assert_eq!(background.message().await.unwrap()["method"], "notifications/tools/list_changed");
    // A client cannot answer in the server's name either.
    let forged = json!({"jsonrpc": "2.0", "id": "s1", "result": {"role": "assistant"}});
    assert_eq!(setup.send(Request::post(&forged).in_session(&a)).await.status, 202);
    settle(&setup, &mut server, &a).await;
}

#[tokio::test]
async fn listeners_of_the_stateless_revision_are_told_under_their_own_id() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let key = "io.modelcontextprotocol/subscriptionId";
    let mut stream = setup.send(modern("mine", "subscriptions/listen", json!({"notifications": {}}))).await;
    let asked = server.expect("subscriptions/listen").await;
    let id = &asked["id"];
    for method in ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"] {
        server.write(&json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {key: id}}})).await;
        let told = stream.message().await.unwrap();
        assert_eq!((&told["method"], &told["params"]["_meta"][key]), (&json!(method), &json!("mine")));
    }
    server.answer(&asked, &json!({"_meta": {key: id}})).await;
    let last = stream.message().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["_meta"][key]), (&json!("mine"), &json!("mine")));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn a_listener_is_told_by_a_server_that_writes_its_number_as_text() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let key = "io.modelcontextprotocol/subscriptionId";
    let mut stream = setup.send(modern(30, "subscriptions/listen", json!({"notifications": {}}))).await;
    let asked = server.expect("subscriptions/listen").await;
    for tag in [json!("nobody"), json!("\""), json!(format!("\"{}\"", asked["id"])), asked["id"].to_string().into()] {
        let params = json!({"_meta": {key: tag}});
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params})).await;
    }
    let last = json!({"resultType": "complete", "_meta": {key: asked["id"].to_string()}});
    server.answer(&asked, &last).await;
    let told = stream.message().await.unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["_meta"][key]),
        (&json!("notifications/tools/list_changed"), &json!(30))
    );
    let last = stream.message().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["_meta"][key]), (&json!(30), &json!(30)));
}

#[tokio::test]
async fn whoever_listens_gets_a_stream_or_is_told_that_there_is_nothing_else() {
    let mut setup = Setup::streamable().await;
    let mut server = setup.server().await;
    setup.speak_modern(&mut server).await;
    let listen = |kind| modern(1, "subscriptions/listen", json!({"notifications": {}})).instead("Accept", kind);
    assert_eq!(setup.send(listen("application/json")).await.status, 406);
    let (stream, ()) = tokio::join!(setup.send(listen("*/*")), async {
        server.expect("subscriptions/listen").await;
    });
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
}
