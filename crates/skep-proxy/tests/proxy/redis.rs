//! Proxies that share their sessions in a real Redis.

use redis::Commands as _;
use serde_json::{Value, json};
use skep_conformance::redis::{PASSWORD, RedisServer};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, Redis, RedisSettings, SessionStore};

use crate::bridge::server::{Setup, limits};
use crate::eras::stands_alone;
use crate::http::{PATIENCE, Request, call, initialize, request};
use crate::transparent::server::{Before, Server, with_sessions};

pub(crate) fn settings(server: &RedisServer) -> RedisSettings {
    RedisSettings { password: Some(PASSWORD.to_owned()), database: 3, ..RedisSettings::new(&server.address()) }
}

pub(crate) async fn store(server: &RedisServer) -> SessionStore {
    SessionStore::redis(Redis::connect(&settings(server)).await.unwrap())
}

/// What the keys of sessions look like, and no others.
pub(crate) const SESSIONS: &str = "*-*-*-*-*";

/// Somebody else who looks into the same database.
pub(crate) fn look(server: &RedisServer) -> redis::Connection {
    let info = redis::IntoConnectionInfo::into_connection_info(format!("redis://{}/3", server.address())).unwrap();
    let with_password = info.redis_settings().clone().set_password(PASSWORD);
    redis::Client::open(info.set_redis_settings(with_password)).unwrap().get_connection().unwrap()
}

pub(crate) async fn before(redis: &RedisServer, server: &Server) -> Before {
    keeping(store(redis).await, server, Limits::default()).await
}

/// A proxy before a server, with sessions that are kept there.
pub(crate) async fn keeping(store: SessionStore, server: &Server, limits: Limits) -> Before {
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, limits, Forwarded::default()).unwrap();
    Before::with(transparent.with_store(store)).await
}

#[tokio::test]
async fn sessions_are_written_down_as_others_read_them_and_live_while_they_are_used() {
    let Some(redis) = RedisServer::start("sessions_are_written_down_as_others_read_them_and_live_while_they_are_used")
    else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let before = before(&redis, &server).await;
    assert_eq!(before.send(Request::post(&initialize("2025-11-25"))).await.header("mcp-session-id"), Some("a-0"));
    let mut looking = look(&redis);
    // The id is none, so that its key is made of it: the UUID of version 5 that everybody makes.
    let key = "thv:proxy:session:c05fba92-3aea-5b4c-b33b-84ad112d8b3c";
    assert_eq!(looking.keys::<_, Vec<String>>(SESSIONS).unwrap(), [key]);
    let written: Value = serde_json::from_str(&looking.get::<_, String>(key).unwrap()).unwrap();
    assert_eq!(format!("thv:proxy:session:{}", written["id"].as_str().unwrap()), key);
    assert_eq!(written["type"], "mcp");
    assert_eq!(written["metadata"]["backend_url"], format!("http://{}", server.address));
    assert_eq!(written["metadata"]["init_body"], initialize("2025-11-25").to_string());
    assert!((7100..=7200).contains(&looking.ttl::<_, i64>(key).unwrap()));

    let _: () = looking.expire(key, 60).unwrap();
    assert_eq!(before.send(Request::post(&call(1, "x")).in_session("a-0")).await.status, 200);
    assert!(looking.ttl::<_, i64>(key).unwrap() > 7000, "it was used");
    assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session("a-0")).await.status, 204);
    assert_eq!(looking.keys::<_, Vec<String>>("*").unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_client_may_come_to_any_proxy_and_each_finds_the_server_that_is_there() {
    let Some(redis) = RedisServer::start("a_client_may_come_to_any_proxy_and_each_finds_the_server_that_is_there")
    else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let (first, second) = (before(&redis, &server).await, before(&redis, &server).await);
    first.send(Request::post(&initialize("2025-11-25"))).await;
    let mut answer = second.send(Request::post(&call(1, "x")).in_session("a-0")).await;
    assert_eq!(answer.json().await["result"]["session"], "a-0");
    // What the second one learns about a server that was replaced, the first one knows.
    server.replace(with_sessions("b"));
    assert_eq!(second.send(Request::post(&call(2, "x")).in_session("a-0")).await.status, 200);
    server.seen();
    let mut answer = first.send(Request::post(&call(3, "x")).in_session("a-0")).await;
    assert_eq!(answer.json().await["result"]["session"], "b-0");
    assert_eq!(server.seen().len(), 1, "no other handshake");
    assert_eq!(second.send(Request::new("DELETE", "/mcp").in_session("a-0")).await.status, 204);
    assert_eq!(first.send(Request::post(&call(4, "x")).in_session("a-0")).await.status, 404);
}

#[tokio::test]
async fn a_session_of_the_bridge_is_known_to_the_bridge_beside_it() {
    let Some(redis) = RedisServer::start("a_session_of_the_bridge_is_known_to_the_bridge_beside_it") else { return };
    let mut first = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let mut second = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let (_server, session) = first.begin().await;
    let mut server = second.server().await;
    let (mut answer, ()) =
        tokio::join!(second.send(Request::post(&call(1, "a")).plain().in_session(&session)), async {
            server.agree().await;
            let message = server.expect("tools/call").await;
            server.answer(&message, &json!({"here": true})).await;
        });
    assert_eq!(answer.json().await["result"], json!({"here": true}));
    assert_eq!(second.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    assert_eq!(first.send(Request::post(&call(2, "a")).in_session(&session)).await.status, 404);
}

#[tokio::test]
async fn a_session_before_a_server_without_any_is_known_to_every_proxy() {
    let Some(mut redis) = RedisServer::start("a_session_before_a_server_without_any_is_known_to_every_proxy") else {
        return;
    };
    let server = Server::start(stands_alone).await;
    let (first, second) = (before(&redis, &server).await, before(&redis, &server).await);
    let opened = first.send(Request::post(&initialize("2025-06-18"))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let list = |id| Request::post(&request(id, "tools/list", &json!({}))).plain().in_session(&session);
    for proxy in [&second, &first] {
        let answer = proxy.send(list(1)).await.json().await;
        assert_eq!(
            (&answer["result"]["tools"][0]["name"], answer["result"].get("resultType")),
            (&json!("weigh"), None)
        );
    }
    redis.kill();
    for refused in
        [list(2), Request::post(&initialize("2025-06-18")), Request::new("DELETE", "/mcp").in_session(&session)]
    {
        let mut refused = first.send(refused).await;
        assert_eq!((refused.status, refused.text().await.trim_end()), (503, "session store unavailable"));
    }
    redis.resume().unwrap();
    let again = async { while second.send(list(3)).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
    let delete =
        async { while second.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status != 204 {} };
    tokio::time::timeout(PATIENCE, delete).await.unwrap();
    let gone = async { while first.send(list(4)).await.status != 404 {} };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_session_before_a_process_without_any_is_known_to_the_bridge_beside_it() {
    let Some(redis) = RedisServer::start("a_session_before_a_process_without_any_is_known_to_the_bridge_beside_it")
    else {
        return;
    };
    let mut first = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let mut second = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let mut server = first.server().await;
    let (opened, ()) = tokio::join!(first.send(Request::post(&initialize("2025-06-18"))), async {
        let handshake = server.expect("initialize").await;
        let refusal = json!({"code": -32601, "message": "Method not found"});
        server.write(&json!({"jsonrpc": "2.0", "id": handshake["id"], "error": refusal})).await;
        // What it speaks, and what it can do.
        for _ in 0..2 {
            server.tell_versions().await;
        }
    });
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut server = second.server().await;
    let (mut answer, ()) =
        tokio::join!(second.send(Request::post(&call(1, "a")).plain().in_session(&session)), async {
            let message = server.expect("tools/call").await;
            assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            server.answer(&message, &json!({"resultType": "complete", "here": true})).await;
        });
    assert_eq!(answer.json().await["result"], json!({"here": true}));
    assert_eq!(second.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    assert_eq!(first.send(Request::post(&call(2, "a")).in_session(&session)).await.status, 404);
}

#[tokio::test]
async fn messages_for_a_stream_that_another_proxy_holds_are_refused() {
    let Some(redis) = RedisServer::start("messages_for_a_stream_that_another_proxy_holds_are_refused") else { return };
    let sse = |bridge| Proxy::sse(bridge, Forwarded::default());
    let first = Setup::new(limits(), store(&redis).await, sse).await;
    let second = Setup::new(limits(), store(&redis).await, sse).await;
    let mut stream = first.send(Request::new("GET", "/sse")).await;
    let event = stream.event().await.unwrap();
    let path = event.trim_end().split_once(&first.address).unwrap().1.to_owned();
    let post = |path: &str| Request::new("POST", path).body(request(1, "ping", &json!({})).to_string());
    let mut refused = second.send(post(&path)).await;
    assert_eq!((refused.status, refused.text().await.trim_end()), (503, "SSE connection not held by this instance"));
    assert_eq!(second.send(post("/messages?session_id=nobody")).await.status, 404);
    drop(stream);
    let ended = async { while first.send(post(&path)).await.status != 404 {} };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

#[tokio::test]
async fn trap_68_a_store_that_is_gone_is_told_and_sessions_outlive_it() {
    let Some(mut redis) = RedisServer::start("trap_68_a_store_that_is_gone_is_told_and_sessions_outlive_it") else {
        return;
    };
    let mut bridge = Setup::new(limits(), store(&redis).await, Proxy::streamable).await;
    let (mut server, session) = bridge.begin().await;
    let sse = Setup::new(limits(), store(&redis).await, |bridge| Proxy::sse(bridge, Forwarded::default())).await;
    let http_server = Server::start(with_sessions("a")).await;
    let transparent = before(&redis, &http_server).await;
    transparent.send(Request::post(&initialize("2025-11-25"))).await;
    redis.kill();
    let refused = async |sent: crate::http::Response| {
        let mut sent = sent;
        assert_eq!((sent.status, sent.text().await.trim_end()), (503, "session store unavailable"));
    };
    refused(bridge.send(Request::post(&call(1, "a")).in_session(&session)).await).await;
    refused(bridge.send(Request::post(&initialize("2025-11-25"))).await).await;
    refused(bridge.send(Request::new("DELETE", "/mcp").in_session(&session)).await).await;
    refused(bridge.send(Request::listen(&session)).await).await;
    refused(sse.send(Request::new("GET", "/sse")).await).await;
    refused(sse.send(Request::new("POST", "/messages?session_id=x")).await).await;
    refused(transparent.send(Request::post(&call(1, "x")).in_session("a-0")).await).await;
    // Who needs no session is served all the same.
    let (alone, ()) = tokio::join!(bridge.send(Request::post(&call(2, "a")).plain()), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(alone.status, 200);

    redis.resume().unwrap();
    let (answer, ()) =
        tokio::join!(bridge.once_available(Request::post(&call(3, "a")).plain().in_session(&session)), async {
            let message = server.expect("tools/call").await;
            server.answer(&message, &json!({})).await;
        });
    assert_eq!(answer.status, 200);
    let again = async { while transparent.send(Request::post(&call(4, "x")).in_session("a-0")).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_told_at_the_start_without_its_password() {
    let Some(mut redis) = RedisServer::start("a_store_that_cannot_be_used_is_told_at_the_start_without_its_password")
    else {
        return;
    };
    let wrong = RedisSettings { password: Some("hunter2 of tests".to_owned()), ..settings(&redis) };
    let told = Redis::connect(&wrong).await.unwrap_err().to_string();
    assert!(told.starts_with(&format!("cannot use Redis at {}: ", redis.address())), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    redis.kill();
    assert!(Redis::connect(&settings(&redis)).await.is_err());
}

#[tokio::test]
async fn trap_18_a_session_whose_pod_is_gone_moves_to_the_one_that_is_there() {
    let Some(redis) = RedisServer::start("trap_18_a_session_whose_pod_is_gone_moves_to_the_one_that_is_there") else {
        return;
    };
    let server = Server::start(with_sessions("a")).await;
    let before = before(&redis, &server).await;
    before.send(Request::post(&initialize("2025-11-25"))).await;
    // The pod that the session began at had an address where nobody is now.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut looking = look(&redis);
    let [key] = looking.keys::<_, Vec<String>>(SESSIONS).unwrap().try_into().unwrap();
    let written = looking.get::<_, String>(&key).unwrap().replace(&server.address, &gone.to_string());
    let _: () = looking.set(&key, written).unwrap();
    server.replace(with_sessions("b"));
    for _ in 0..2 {
        let mut answer = before.send(Request::post(&call(5, "x")).in_session("a-0")).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, Some("a-0")));
        assert_eq!(answer.json().await["result"]["session"], "b-0");
    }
    let handshakes = server.seen().iter().filter(|seen| seen.json()["method"] == "initialize").count();
    assert_eq!(handshakes, 1);
    let written: Value = serde_json::from_str(&looking.get::<_, String>(&key).unwrap()).unwrap();
    assert_eq!(written["metadata"]["backend_url"], format!("http://{}", server.address));
    assert_eq!(written["metadata"]["backend_sid"], "b-0");
}
