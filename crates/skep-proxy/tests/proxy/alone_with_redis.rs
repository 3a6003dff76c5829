//! Requests that stand alone, before proxies that share their sessions in a real Redis.

use redis::Commands as _;
use serde_json::{Value, json};
use skep_conformance::redis::RedisServer;
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{EraSettings, Forwarded, Limits, ParkedCalls, Proxy, SealKey, SessionStore};

use crate::bridge::server::{Setup, limits};
use crate::eras::stands_alone;
use crate::http::{Request, initialize, modern, request, with_capabilities};
use crate::redis::{before, keeping, look, store};
use crate::transparent::server::{Before, Server, reply, with_sessions};

/// What is left of the time of the only session.
fn left(looking: &mut redis::Connection) -> i64 {
    let [key] = looking.keys::<_, Vec<String>>("*-*-*-*").unwrap().try_into().unwrap();
    looking.ttl(key).unwrap()
}

#[tokio::test]
async fn trap_2_a_session_lives_no_longer_for_being_named_by_what_stands_alone() {
    let Some(mut redis) = RedisServer::start("trap_2_a_session_lives_no_longer_for_being_named_by_what_stands_alone")
    else {
        return;
    };
    let mut looking = look(&redis);
    let mut bridge = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let (mut process, session) = bridge.begin().await;
    bridge.speak_modern(&mut process).await;
    let server = Server::start(with_sessions("a")).await;
    let transparent = before(&redis, &server).await;
    let expire = |looking: &mut redis::Connection| {
        let [key] = looking.keys::<_, Vec<String>>("*-*-*-*").unwrap().try_into().unwrap();
        let _: () = looking.expire(key, 60).unwrap();
    };
    expire(&mut looking);
    let call = |id: u32| modern(id, "tools/list", json!({})).in_session(&session);
    let answered = async |request: Request, process: &mut crate::bridge::server::Server| {
        let (answer, ()) = tokio::join!(bridge.send(request), async {
            let message = process.expect("tools/list").await;
            process.answer(&message, &json!({"tools": []})).await;
        });
        answer.status
    };
    assert_eq!(answered(call(1), &mut process).await, 200);
    assert!(left(&mut looking) <= 60, "it was not used");
    assert_eq!(bridge.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);

    transparent.send(Request::post(&initialize("2025-11-25"))).await;
    expire(&mut looking);
    assert_eq!(transparent.send(modern(1, "tools/list", json!({})).in_session("a-0")).await.status, 200);
    assert!(left(&mut looking) <= 60, "it was not used");

    // What needs no session is served without the store.
    redis.kill();
    assert_eq!(answered(call(2), &mut process).await, 200);
    assert_eq!(transparent.send(modern(2, "tools/list", json!({})).in_session("a-0")).await.status, 200);
}

/// A server that wants a call to be repeated, with what it gives.
async fn asking_again() -> Server {
    Server::start(|seen| {
        let message = seen.json();
        if message["method"] != "tools/call" {
            return stands_alone(seen);
        }
        let state = &message["params"]["requestState"];
        let result = match state.as_str() {
            None => json!({"resultType": "input_required", "requestState": "own"}),
            Some(_) => json!({"resultType": "complete", "content": [], "state": state}),
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        reply(200, &[("content-type", "application/json")], body)
    })
    .await
}

/// The answer to a call, which is repeated with what was given.
async fn called(proxy: &Before, state: &Value) -> Value {
    let mut params = json!({"name": "a"});
    if !state.is_null() {
        params["requestState"] = state.clone();
    }
    proxy.send(with_capabilities(1, "tools/call", params, &json!({}))).await.json().await
}

#[tokio::test]
async fn what_has_to_be_repeated_may_be_brought_to_any_proxy() {
    let Some(mut redis) = RedisServer::start("what_has_to_be_repeated_may_be_brought_to_any_proxy") else { return };
    let server = asking_again().await;
    let (first, second) = (before(&redis, &server).await, before(&redis, &server).await);
    let state = called(&first, &Value::Null).await["result"]["requestState"].clone();
    assert_eq!(called(&second, &state).await["result"]["state"], "own");
    // Both know the key by now.
    redis.kill();
    assert_eq!(called(&first, &state).await["result"]["state"], "own");
    let written = state.as_str().unwrap();
    assert!(written.starts_with("sk1."), "{written}");
}

#[tokio::test]
async fn a_key_that_somebody_gives_counts_for_more_than_the_one_in_redis() {
    let Some(redis) = RedisServer::start("a_key_that_somebody_gives_counts_for_more_than_the_one_in_redis") else {
        return;
    };
    let server = asking_again().await;
    let key = |secret: &str| Some(SealKey::of(secret).unwrap());
    let secret = "a secret that somebody has mounted";
    let given = keeping(store(&redis).await.with_key(key(secret)), &server, Limits::default()).await;
    let state = called(&given, &Value::Null).await["result"]["requestState"].clone();
    let keys: Vec<String> = look(&redis).keys("*").unwrap();
    assert_eq!(keys, Vec::<String>::new(), "the key is nowhere else");
    // It is the same for whoever was given it, with or without a store.
    let alone = keeping(SessionStore::memory().with_key(key(&format!("{secret}\n"))), &server, Limits::default()).await;
    assert_eq!(called(&alone, &state).await["result"]["state"], "own");
    let other = keeping(SessionStore::memory().with_key(key(&secret.to_uppercase())), &server, Limits::default()).await;
    for foreign in [other, before(&redis, &server).await] {
        assert_eq!(called(&foreign, &state).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn nobody_is_asked_in_a_session_whose_answers_may_come_to_another_proxy() {
    let Some(redis) = RedisServer::start("nobody_is_asked_in_a_session_whose_answers_may_come_to_another_proxy") else {
        return;
    };
    let server = Server::start(stands_alone).await;
    let proxy = async |store: SessionStore, parked_calls: ParkedCalls| {
        let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
        let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
        let settings = EraSettings { parked_calls, ..EraSettings::default() };
        Before::with(transparent.with_store(store).with_eras(settings)).await
    };
    let (alone, none) = (json!({"roots": {}}), json!({}));
    for (store, parked_calls, expected) in [
        (SessionStore::memory(), ParkedCalls::Auto, &alone),
        (SessionStore::memory(), ParkedCalls::Off, &alone),
        (store(&redis).await, ParkedCalls::Auto, &none),
        (store(&redis).await, ParkedCalls::Off, &none),
        // Somebody sees to it that clients come back to the same proxy.
        (store(&redis).await, ParkedCalls::On, &alone),
    ] {
        let proxy = proxy(store, parked_calls).await;
        let mut offer = initialize("2025-11-25");
        offer["params"]["capabilities"] = json!({"roots": {}});
        let opened = proxy.send(Request::post(&offer).plain()).await;
        let session = opened.header("mcp-session-id").unwrap();
        server.seen();
        proxy.send(Request::post(&request(1, "tools/list", &json!({}))).in_session(session)).await.text().await;
        let asked = server.seen().into_iter().find(|seen| seen.json()["method"] == "tools/list").unwrap().json();
        let told = &asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(told, expected, "{parked_calls:?}");
    }
}

#[tokio::test]
async fn nobody_is_asked_by_a_process_in_a_session_whose_answers_may_come_to_another_proxy() {
    let name = "nobody_is_asked_by_a_process_in_a_session_whose_answers_may_come_to_another_proxy";
    let Some(redis) = RedisServer::start(name) else { return };
    for (store, expected) in [(SessionStore::memory(), json!({"roots": {}})), (store(&redis).await, json!({}))] {
        let mut setup = Setup::new(limits(), store, Proxy::streamable).await;
        let mut process = setup.server().await;
        let mut offer = initialize("2025-11-25");
        offer["params"]["capabilities"] = json!({"roots": {}});
        let (opened, ()) = tokio::join!(setup.send(Request::post(&offer).plain()), async {
            let asked = process.expect("initialize").await;
            let error = json!({"code": -32601, "message": "Method not found"});
            process.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
            for _ in 0..2 {
                let asked = process.expect("server/discover").await;
                let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                process.answer(&asked, &result).await;
            }
        });
        let list = Request::post(&request(1, "tools/list", &json!({})));
        let list = list.in_session(opened.header("mcp-session-id").unwrap());
        let (_, asked) = tokio::join!(setup.send(list), async {
            let asked = process.expect("tools/list").await;
            process.answer(&asked, &json!({"tools": []})).await;
            asked
        });
        assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], expected);
    }
}
