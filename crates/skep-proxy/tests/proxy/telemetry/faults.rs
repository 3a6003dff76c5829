//! Collectors that are away, slow, or say what they like. Nobody who calls a tool notices.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use skep_proxy::middleware::{CollectorSettings, Telemetry, TelemetrySettings};

use super::{collector, proxy, settings, span, taking, told, tools, until};
use crate::http::{PATIENCE, Request, call};
use crate::readers::Reader;
use crate::transparent::server::{Before, Server, reply};

/// Told of everything as soon as possible.
pub(crate) fn eager(at: &str) -> TelemetrySettings {
    let soon = Duration::from_millis(10);
    let collector = CollectorSettings { interval: soon, delay: soon, ..collector(at) };
    TelemetrySettings { collector: Some(collector), ..settings() }
}

async fn serves(before: &Before, tool: &str) {
    let mut answer = before.send(Request::post(&call(1, tool))).await;
    assert_eq!((answer.status, answer.json().await["result"]["called"].as_str()), (200, Some(tool)));
}

#[tokio::test]
async fn a_collector_that_is_away_hears_everything_when_it_is_back() {
    let Some(reader) = Reader::get("a_collector_that_is_away_hears_everything_when_it_is_back") else { return };
    let (is_back, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let (back, hearing) = (Arc::clone(&is_back), Arc::clone(&heard));
    let server = Server::start(tools).await;
    let receiver = Server::start(move |seen| {
        if !back.load(Ordering::SeqCst) {
            return reply(503, &[], "");
        }
        hearing.lock().unwrap().push(seen.clone());
        reply(200, &[], "")
    })
    .await;
    let before = proxy(&server, eager(&receiver.address), vec![]).await;
    for tool in ["feed", "weigh_hive"] {
        serves(&before, tool).await;
        until(&receiver, |seen| !told(seen, "traces").is_empty() && !told(seen, "metrics").is_empty()).await;
    }
    is_back.store(true, Ordering::SeqCst);
    serves(&before, "secret").await;
    let names = || -> Vec<String> {
        let heard = heard.lock().unwrap().clone();
        let spans = reader.spans(told(&heard, "traces"));
        spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
    };
    let waiting = async {
        while names().len() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(names(), ["tools/call feed", "tools/call weigh_hive", "tools/call secret"], "in order, and once");
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_nobody_anything() {
    let server = Server::start(tools).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut before = proxy(&server, eager(&nobody.to_string()), vec![]).await;
    for _ in 0..50 {
        serves(&before, "feed").await;
    }
    before.stop().await;
}

#[tokio::test]
async fn a_collector_that_is_slow_delays_no_call_and_no_end() {
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let held = receiver.hold();
    let mut before = proxy(&server, eager(&receiver.address), vec![]).await;
    serves(&before, "feed").await;
    until(&receiver, |seen| !seen.is_empty()).await;
    // It has been told, and does not answer: neither now nor while these are served.
    for _ in 0..50 {
        serves(&before, "feed").await;
    }
    before.stop().await;
    drop(held);
}

#[tokio::test]
async fn whatever_a_collector_answers_it_is_told_once() {
    let Some(reader) = Reader::get("whatever_a_collector_answers_it_is_told_once") else { return };
    let large = "x".repeat(10 << 20);
    for (status, body) in [(200, "garbage"), (200, &large), (400, "what?"), (404, &large), (500, &large)] {
        let server = Server::start(tools).await;
        let body = body.to_owned();
        let receiver = Server::start(move |_| reply(status, &[], body.clone())).await;
        let mut before = proxy(&server, eager(&receiver.address), vec![]).await;
        serves(&before, "feed").await;
        let mut seen = until(&receiver, |seen| !told(seen, "traces").is_empty()).await;
        serves(&before, "weigh_hive").await;
        before.stop().await;
        seen.extend(receiver.seen());
        let spans = reader.spans(told(&seen, "traces"));
        span(&spans, "tools/call feed");
        span(&spans, "tools/call weigh_hive");
    }
}

#[tokio::test]
async fn nothing_is_lost_when_a_proxy_stops() {
    let Some(reader) = Reader::get("nothing_is_lost_when_a_proxy_stops") else { return };
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let telling = TelemetrySettings { collector: Some(collector(&receiver.address)), ..settings() };
    let mut before = proxy(&server, telling, vec![]).await;
    for round in 0..600 {
        before.send(Request::post(&call(round, "feed"))).await.text().await;
    }
    before.stop().await;
    let seen = receiver.seen();
    assert_eq!(reader.spans(told(&seen, "traces")).len(), 600);
    let metrics = reader.metrics(told(&seen, "metrics"));
    let calls = metrics.iter().find(|metric| metric["name"] == "toolhive_mcp_tool_calls").unwrap();
    assert_eq!(calls["points"][0]["value"], 600);
}

#[tokio::test]
async fn the_last_words_are_said_once_more_if_need_be() {
    let server = Server::start(tools).await;
    let refused = Mutex::new(HashSet::new());
    let receiver = Server::start(move |seen| {
        let is_first = refused.lock().unwrap().insert(seen.target.clone());
        reply(if is_first { 503 } else { 200 }, &[], "")
    })
    .await;
    let telling = TelemetrySettings { collector: Some(collector(&receiver.address)), ..settings() };
    let mut before = proxy(&server, telling, vec![]).await;
    serves(&before, "feed").await;
    before.stop().await;
    let targets: Vec<_> = receiver.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/v1/traces", "/v1/traces", "/v1/metrics", "/v1/metrics"]);
}

#[tokio::test]
async fn what_cannot_be_told_anywhere_is_said_at_the_start() {
    for (at, changed, expected) in [
        ("a b", None, "endpoint \"a b\" is not of the form HOST:PORT[/BASE]"),
        ("169.254.169.254:80", None, "endpoint: "),
        ("localhost:1", Some("/no/such/file"), "caCertPath: cannot read /no/such/file"),
    ] {
        let authorities = changed.map(Into::into);
        let collector = CollectorSettings { authorities, ..collector(at) };
        let refused = Telemetry::new(TelemetrySettings { collector: Some(collector), ..settings() }).unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{at}: {refused}");
    }
    let silent = CollectorSettings { traces: None, has_metrics: false, ..collector("localhost:1") };
    let refused = Telemetry::new(TelemetrySettings { collector: Some(silent), ..settings() }).unwrap_err();
    assert!(refused.to_string().contains("neither tracingEnabled nor metricsEnabled"), "{refused}");
}
