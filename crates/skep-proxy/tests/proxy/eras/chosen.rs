//! What somebody may want in another way than usual: the era of the server, who uses its sessions, and which calls wait.

use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{BackendEra, BackendSessions, EraSettings, Forwarded, Limits, ParkedCalls};

use super::streams::{EVENTS, sessions};
use super::{got, stands_alone, words};
use crate::http::{Request, initialize, modern, with_capabilities};
use crate::transparent::server::{Before, Seen, Server, reply, with_sessions};

async fn before(server: &Server, settings: EraSettings) -> Before {
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let before = Before::with(transparent.with_eras(settings)).await;
    server.seen();
    before
}

fn of_era(era: BackendEra) -> EraSettings {
    EraSettings { era, ..EraSettings::default() }
}

#[tokio::test]
async fn a_server_of_an_era_that_somebody_names_is_not_asked_for_it() {
    let server = Server::start(with_sessions("a")).await;
    let proxy = before(&server, of_era(BackendEra::Legacy)).await;
    let answer = proxy.send(modern(1, "tools/list", json!({}))).await.json().await;
    assert_eq!(answer["result"]["session"], "a-0");
    let seen = got(&server, 4).await;
    assert_eq!(words(&seen), ["initialize", "notifications/initialized", "tools/list", "DELETE"]);

    let server = Server::start(stands_alone).await;
    let proxy = before(&server, of_era(BackendEra::Modern)).await;
    assert_eq!(proxy.send(modern(1, "tools/list", json!({}))).await.status, 200);
    assert_eq!(words(&server.seen()), ["tools/list"]);
    let opened = proxy.send(Request::post(&initialize("2025-11-25")).plain()).await;
    assert!(opened.status == 200 && opened.header("mcp-session-id").is_some());
    assert_eq!(words(&server.seen()), ["server/discover"], "it is asked what it can do, and hears of no handshake");
}

#[tokio::test]
async fn an_era_that_somebody_names_stays_whatever_the_server_does() {
    let server = Server::start(stands_alone).await;
    let proxy = before(&server, of_era(BackendEra::Legacy)).await;
    let refused = proxy.send(modern(1, "tools/list", json!({}))).await;
    assert_eq!(refused.status, 502, "it refuses the handshake");
    assert_eq!(words(&server.seen()), ["initialize"]);
    let server = Server::start(with_sessions("a")).await;
    let proxy = before(&server, of_era(BackendEra::Modern)).await;
    assert_eq!(proxy.send(modern(1, "tools/list", json!({}))).await.status, 404);
    assert_eq!(words(&server.seen()), ["tools/list"]);
}

#[tokio::test]
async fn what_is_known_about_the_era_is_told_with_the_health_of_the_proxy() {
    let server = Server::start(stands_alone).await;
    let proxy = before(&server, EraSettings::default()).await;
    let era = async || proxy.send(Request::new("GET", "/health")).await.json().await["era"].clone();
    assert_eq!(era().await, Value::Null);
    proxy.send(modern(1, "tools/list", json!({}))).await;
    let told = era().await;
    assert_eq!((&told["verdict"], &told["reclassifications"]), (&json!("modern"), &json!(0)));
    assert!(told["age_seconds"].as_u64().unwrap() < 60, "{told}");
    server.replace(with_sessions("a"));
    assert_eq!(proxy.send(modern(2, "tools/call", json!({"name": "a"}))).await.status, 200);
    let told = era().await;
    assert_eq!((&told["verdict"], &told["reclassifications"]), (&json!("legacy"), &json!(1)));
}

#[tokio::test]
async fn a_server_on_the_older_transport_is_of_the_older_era() {
    let server = Server::start(|_| reply(204, &[], "")).await;
    let before = Before::local(Dialect::Sse, &server.address).await;
    let health = before.send(Request::new("GET", "/health")).await.json().await;
    assert_eq!(health["era"]["verdict"], "legacy", "{health}");
}

#[tokio::test]
async fn sessions_are_used_by_whom_somebody_says() {
    let ask = async |proxy: &Before, token: Option<&str>| {
        let post = modern(1, "tools/list", json!({}));
        let post = token.into_iter().fold(post, |post, token| post.header("Authorization", token));
        proxy.send(post).await.json().await["result"]["session"].as_str().unwrap().to_owned()
    };
    let settings = |sessions| EraSettings { sessions, ..of_era(BackendEra::Legacy) };

    let server = Server::start(with_sessions("a")).await;
    let proxy = before(&server, settings(BackendSessions::PerRequest)).await;
    for _ in 0..2 {
        let session = ask(&proxy, Some("Bearer a")).await;
        let seen = got(&server, 4).await;
        assert_eq!(words(&seen), ["initialize", "notifications/initialized", "tools/list", "DELETE"]);
        assert_eq!(seen[3].header("mcp-session-id"), Some(&*session));
    }

    let server = Server::start(with_sessions("a")).await;
    let mut proxy = before(&server, settings(BackendSessions::Shared)).await;
    assert_eq!((ask(&proxy, None).await, ask(&proxy, None).await), ("a-0".to_owned(), "a-0".to_owned()));
    assert_eq!(ask(&proxy, Some("Bearer a")).await, "a-1");
    proxy.stop().await;
    assert_eq!(words(&server.seen()).iter().filter(|word| *word == "DELETE").count(), 2);
}

#[tokio::test]
async fn sessions_are_kept_for_as_long_as_somebody_says() {
    let server = Server::start(with_sessions("a")).await;
    let settings = EraSettings { session_idle: Duration::from_millis(100), ..of_era(BackendEra::Legacy) };
    let proxy = before(&server, settings).await;
    let post = modern(1, "tools/list", json!({})).header("Authorization", "Bearer a");
    assert_eq!(proxy.send(post).await.status, 200);
    let seen = got(&server, 4).await;
    assert_eq!(words(&seen)[3], "DELETE", "nobody has used it since");
}

#[tokio::test]
async fn no_call_waits_where_nobody_wants_that() {
    // A server that asks whatever it was told about its client.
    let call = |_: &Seen, message: &Value| {
        let asked = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
        reply(200, &EVENTS, format!("data: {asked}\n\ndata: {answer}\n\n"))
    };
    for (parked_calls, capabilities) in [(ParkedCalls::Off, json!({})), (ParkedCalls::On, json!({"elicitation": {}}))] {
        let server = Server::start(sessions(call, |_| reply(405, &[], ""))).await;
        let proxy = before(&server, EraSettings { parked_calls, ..EraSettings::default() }).await;
        let call = with_capabilities(1, "tools/call", json!({"name": "a"}), &json!({"elicitation": {}}));
        assert_eq!(proxy.send(call).await.status, 200);
        let seen = server.seen();
        let opened = seen.iter().map(Seen::json).find(|message| message["method"] == "initialize").unwrap();
        assert_eq!(opened["params"]["capabilities"], capabilities, "{parked_calls:?}");
        let refused = seen.iter().map(Seen::json).find(|message| message["id"] == "q");
        let code = refused.map(|refused| refused["error"]["code"].clone());
        assert_eq!(code, (parked_calls == ParkedCalls::Off).then(|| json!(-32601)), "{parked_calls:?}");
    }
}
