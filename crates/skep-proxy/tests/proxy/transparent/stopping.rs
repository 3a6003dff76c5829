//! Proxies that stop while clients hear from the server: streams whose end nobody awaits end at once, and calls finish.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;
use skep_proxy::middleware::{
    Authentication, Chain, CollectorSettings, Middleware, Step, Telemetry, TelemetrySettings,
};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{BackendEra, EraSettings, Forwarded, Limits, Proxy};
use tokio::sync::mpsc;

use super::server::{Before, Seen, Server, reply, with_sessions};
use super::streams::stream;

use crate::http::{PATIENCE, Request, call, modern};

const EVENTS: [(&str, &str); 1] = [("content-type", "text/event-stream")];
/// Much less than a proxy has patience with calls.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A server that has one stream, whose parts the test sends, for requests that are meant.
async fn streaming(
    is_meant: impl Fn(&Seen) -> bool + Send + Sync + 'static,
) -> (Server, mpsc::UnboundedSender<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let server = Server::start(move |seen| match seen.method.as_str() {
        _ if is_meant(seen) => stream(&EVENTS, receiver.lock().unwrap().take().unwrap()),
        "POST" if seen.json()["method"] == "server/discover" => {
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
            let text = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result}).to_string();
            reply(200, &[("content-type", "application/json")], text)
        }
        "POST" => reply(202, &[], "Accepted"),
        _ => reply(204, &[], ""),
    })
    .await;
    (server, sender)
}

#[tokio::test]
async fn whoever_listens_does_not_keep_the_proxy_and_is_told_that_it_is_over() {
    let (server, sender) = streaming(|seen| seen.json()["method"] == "subscriptions/listen").await;
    let mut before = Before::local(Dialect::Streamable, &server.address).await;
    let mut stream = before.send(modern(30, "subscriptions/listen", json!({"notifications": {}}))).await;
    let told = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#;
    let told: &'static str = format!("event: message\ndata: {told}\n\n").leak();
    sender.send(told).unwrap();
    assert_eq!(stream.event().await.unwrap(), told);
    let begun = Instant::now();
    let ((), last) = tokio::join!(before.stop(), stream.message());
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 30});
    let result = json!({"resultType": "complete", "_meta": tag});
    assert_eq!(last.unwrap(), json!({"jsonrpc": "2.0", "id": 30, "result": result}));
    assert_eq!(stream.event().await, None);
    tokio::time::timeout(PATIENCE, sender.closed()).await.unwrap();
}

#[tokio::test]
async fn a_stream_of_events_ends_at_once_or_after_the_answers_that_it_owes() {
    for is_asked in [false, true] {
        let (server, sender) = streaming(|seen| seen.target == "/sse").await;
        let mut before = Before::local(Dialect::Sse, &server.address).await;
        let mut stream = before.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await;
        sender.send("event: endpoint\ndata: /messages?s=1\n\n").unwrap();
        assert!(stream.event().await.unwrap().contains("/messages?s=1"));
        if is_asked {
            let post = Request::new("POST", "/messages?s=1").header("Content-Type", "application/json");
            assert_eq!(before.send(post.body(call(7, "slow").to_string())).await.status, 202);
        }
        let begun = Instant::now();
        let (answer, done) = ("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", Duration::from_secs(1));
        let ((), last) = tokio::join!(before.stop(), async {
            if is_asked {
                tokio::time::sleep(done).await;
                sender.send(answer).unwrap();
                assert_eq!(stream.event().await.as_deref(), Some(answer), "it is still there");
            }
            stream.event().await
        });
        assert_eq!(last, None);
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn trap_62_servers_and_collectors_that_are_silent_at_the_end_are_waited_for_at_the_same_time() {
    let (server, receiver) = (Server::start(with_sessions("a")).await, Server::start(|_| reply(200, &[], "")).await);
    let collector =
        CollectorSettings { is_insecure: true, has_metrics: true, ..CollectorSettings::new(&receiver.address) };
    let telemetry = Telemetry::new(TelemetrySettings { collector: Some(collector), ..TelemetrySettings::default() });
    let chain = vec![Step::Authenticate(Authentication::Anonymous), Step::Telemetry(telemetry.unwrap())];
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let transparent = transparent.with_eras(EraSettings { era: BackendEra::Legacy, ..EraSettings::default() });
    let proxy = Proxy::transparent(transparent).with_middleware(Middleware::new(Chain::new(chain)));
    let mut before = Before::unready(proxy).await;
    before.await_ready().await;
    let post = modern(1, "tools/list", json!({})).header("Authorization", "Bearer a");
    assert_eq!(before.send(post).await.status, 200, "a session of the server is kept for it");
    let _silent = (server.hold(), receiver.hold());
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    before.stop().await;
    let words = server.seen().iter().filter(|seen| seen.method == "DELETE").count();
    assert_eq!((words, receiver.seen().len()), (1, 1), "both were told");
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}
