//! Records of requests.

use std::path::Path;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{
    Audit, AuditSettings, Authentication, Oidc, PrometheusSettings, Step, Telemetry, TelemetrySettings,
};
use tempfile::TempDir;

use super::auth::issuer::{Issuer, Key};
use super::{Guarded, rules, with_tools};
use crate::authz::hive;
use crate::http::{PATIENCE, Request, call, modern, request};
use crate::transparent::server::reply;
use crate::transparent::streams::stream;

pub(crate) fn settings(folder: &TempDir) -> AuditSettings {
    AuditSettings {
        component: "hive".to_owned(),
        transport: "streamable-http".to_owned(),
        file: Some(folder.path().join("audit.log")),
        ..AuditSettings::default()
    }
}

/// The records so far, at least so many. A record may be written when the client has its answer already.
pub(crate) async fn records(folder: &TempDir, count: usize) -> Vec<Value> {
    let file = folder.path().join("audit.log");
    let read = |file: &Path| -> Vec<Value> {
        let text = std::fs::read_to_string(file).unwrap();
        // Somebody who reads while it is written may see a part of the last line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let waiting = async {
        while read(&file).len() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    read(&file)
}

fn chain(settings: AuditSettings) -> Vec<Step> {
    let rules = rules(&["feed"], &[]);
    vec![
        Step::Audit(Audit::new(settings).unwrap()),
        Step::Authenticate(Authentication::Anonymous),
        Step::ToolCalls(rules),
        Step::Parse,
        Step::Recover,
    ]
}

#[tokio::test]
async fn a_call_is_recorded_with_who_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = Guarded::new(chain(settings(&folder)), with_tools).await;
    let post = Request::post(&call(1, "feed"))
        .header("User-Agent", "probe/1")
        .header("X-Request-ID", "r-1")
        .header("X-Forwarded-For", "203.0.113.9")
        .header("Authorization", "Bearer hunter2");
    assert_eq!(guarded.send(post).await.json().await["result"]["called"], "feed");
    let records = records(&folder, 1).await;
    let record = &records[0];
    assert_eq!((&record["level"], &record["msg"]), (&json!("AUDIT"), &json!("audit_event")));
    assert_eq!((&record["type"], &record["outcome"]), (&json!("mcp_tool_call"), &json!("success")));
    assert_eq!((&record["component"], &record["data"]), (&json!("hive"), &Value::Null));
    let source =
        json!({"type": "network", "value": "127.0.0.1", "extra": {"user_agent": "probe/1", "request_id": "r-1"}});
    assert_eq!(record["source"], source);
    assert_eq!(record["subjects"], json!({"user_id": "anonymous", "user": "Anonymous User"}));
    assert_eq!(record["target"], json!({"endpoint": "/mcp", "method": "tools/call", "name": "feed", "type": "tool"}));
    assert_eq!(record["metadata"]["extra"]["transport"], "http");
    assert!(
        record["metadata"]["extra"]["duration_ms"].is_u64()
            && record["metadata"]["extra"]["response_size_bytes"].is_null()
    );
    assert!(!record.to_string().contains("hunter2"));
}

#[tokio::test]
async fn trap_56_what_is_refused_is_recorded_too_with_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let oidc = Box::new(Oidc::new(&issuer.settings()).unwrap());
    let steps = vec![
        Step::Audit(Audit::new(settings(&folder)).unwrap()),
        Step::Authenticate(Authentication::Oidc(oidc)),
        Step::ToolCalls(rules(&["feed"], &[])),
        Step::Parse,
        Step::Recover,
    ];
    let guarded = Guarded::new(steps, with_tools).await;
    let mut claims = issuer.claims();
    claims["act"] = json!({"iss": "i", "sub": "agent"});
    claims["preferred_username"] = json!("ann.bee");
    claims["tsid"] = json!("a link");
    let token = format!("Bearer {}", key.sign(&claims));
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 401);
    let hidden = guarded.send(Request::post(&call(2, "secret")).header("Authorization", &token)).await;
    assert_eq!(hidden.status, 200);
    drop(hidden);
    let records = records(&folder, 2).await;
    assert_eq!((&records[0]["outcome"], &records[0]["subjects"]), (&json!("denied"), &json!({"user": "anonymous"})));
    let hidden = &records[1];
    assert_eq!((&hidden["outcome"], &hidden["subjects"]["user_id"]), (&json!("application_error"), &json!("ann")));
    assert_eq!((&hidden["subjects"]["user"], &hidden["target"]["name"]), (&json!("ann.bee"), &json!("secret")));
    let extra = &hidden["metadata"]["extra"];
    assert_eq!(
        (&extra["jsonrpc_error_code"], &extra["jsonrpc_error_message"]),
        (&json!(-32602), &json!("tool not found"))
    );
    let delegation =
        json!({"chain": [{"iss": "i", "sub": "agent"}], "truncated": false, "omitted": 0, "malformed": false});
    assert_eq!(hidden["delegation"], delegation);
    assert!(!hidden.to_string().contains("a link") && !hidden.to_string().contains(&token[10..]));
}

#[tokio::test]
async fn what_was_said_is_recorded_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let audit = AuditSettings { has_requests: true, has_answers: true, data_bytes: 120, ..settings(&folder) };
    let guarded = Guarded::new(chain(audit), with_tools).await;
    guarded.send(Request::post(&call(1, "feed"))).await.text().await;
    guarded.send(Request::post(&request(2, "tools/list", &json!({"x": "y".repeat(200)})))).await.text().await;
    let records = records(&folder, 2).await;
    assert_eq!(records[0]["data"]["request"]["params"]["name"], "feed");
    assert_eq!(records[0]["data"]["response"]["result"]["called"], "feed");
    assert!(records[0]["metadata"]["extra"]["response_size_bytes"].as_u64().unwrap() > 10);
    assert_eq!(records[1]["data"]["request"], Value::Null, "too large");
    assert_eq!(records[1]["data"]["response"].as_str().unwrap().len(), 120);
}

/// So much of what a client calls something is recorded, in bytes, and the mark that something is missing.
const CUT: usize = (4 << 10) + '…'.len_utf8();

#[tokio::test]
async fn nobody_can_make_a_record_too_large_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = Guarded::new(chain(settings(&folder)), with_tools).await;
    // As much as a body may have.
    let large = "x".repeat((8 << 20) - 100);
    let long = "y".repeat(20 << 10);
    let read = request(2, "resources/read", &json!({"uri": large}));
    let posts = [
        Request::post(&request(1, &large, &json!({}))),
        Request::post(&read).header("User-Agent", &long).header("X-Request-ID", &long),
    ];
    for post in posts {
        guarded.send(post).await.text().await;
    }
    let records = records(&folder, 2).await;
    let is_cut = |text: &Value| text.as_str().is_some_and(|text| text.len() == CUT && text.ends_with('…'));
    assert!(is_cut(&records[0]["target"]["method"]), "{}", records[0]["target"]["type"]);
    assert_eq!(records[0]["type"], "mcp_request");
    assert_eq!(records[1]["target"]["method"], "resources/read");
    assert!(is_cut(&records[1]["target"]["name"]), "{}", records[1]["target"]["type"]);
    assert!(
        is_cut(&records[1]["source"]["extra"]["user_agent"]) && is_cut(&records[1]["source"]["extra"]["request_id"])
    );
}

#[tokio::test]
async fn secrets_in_the_address_of_a_resource_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = Guarded::new(chain(settings(&folder)), with_tools).await;
    let uri = "https://ann:hunter2@h/doc?token=hunter2&page=2";
    guarded.send(Request::post(&request(1, "resources/read", &json!({"uri": uri})))).await.text().await;
    let record = records(&folder, 1).await.remove(0);
    assert_eq!(record["target"]["name"], "https://h/doc?token=[REDACTED]&page=2");
    assert!(!record.to_string().contains("hunter2"), "{record}");
}

/// A large answer in a stream is one, although nobody holds it to look at it.
#[tokio::test]
async fn a_client_that_goes_away_with_a_large_answer_has_been_answered() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x".repeat(256 << 10);
    let event =
        format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"text\":\"{text}\"}}}}\n\n");
    let event: &'static str = Box::leak(event.into_boxed_str());
    let (sender, mut streams) = tokio::sync::mpsc::unbounded_channel();
    let guarded = Guarded::new(chain(settings(&folder)), move |seen| {
        if seen.json()["method"] != "tools/call" {
            return with_tools(seen);
        }
        let (parts, receiver) = tokio::sync::mpsc::unbounded_channel();
        parts.send(event).unwrap();
        sender.send(parts).unwrap();
        stream(&[("content-type", "text/event-stream")], receiver)
    })
    .await;
    let mut answer = guarded.send(Request::post(&call(2, "feed"))).await;
    assert_eq!(answer.event().await.unwrap().len(), event.len());
    drop(answer);
    assert_eq!(records(&folder, 1).await[0]["outcome"], "success");
    drop(streams.try_recv().unwrap());
}

/// Forms in which a call reaches a server all the same.
fn forms(call: &Value) -> Vec<(&'static str, Request)> {
    let post = |path: &str, kind: &str| Request::new("POST", path).header("Content-Type", kind).body(call.to_string());
    vec![
        ("a batch of one", Request::post(&json!([call]))),
        ("at the address of a stream", post("/x/sse", "application/json")),
        ("as text", post("/mcp", "text/plain")),
        ("without a type", Request::new("POST", "/mcp").body(call.to_string())),
    ]
}

#[tokio::test]
async fn trap_56_no_form_of_a_call_passes_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let types = ["mcp_tool_call".to_owned()].into();
    let audit = AuditSettings { types, has_requests: true, ..settings(&folder) };
    let telemetry = TelemetrySettings {
        server: "hive".to_owned(),
        transport: "streamable-http".to_owned(),
        prometheus: Some(PrometheusSettings { host: "127.0.0.1".to_owned(), port: 0, is_on_transport: true }),
        ..TelemetrySettings::default()
    };
    let steps = vec![
        Step::Audit(Audit::new(audit).unwrap()),
        Step::Authenticate(Authentication::Anonymous),
        Step::Parse,
        Step::Telemetry(Telemetry::new(telemetry).unwrap()),
    ];
    let guarded = Guarded::new(steps, hive).await;
    let mut count = 0;
    for (form, request) in forms(&call(1, "feed")) {
        let mut answer = guarded.send(request).await;
        let text = answer.text().await;
        assert_eq!(answer.status, 200, "{form}: {text}");
        count += 1;
        let record = records(&folder, count).await.pop().unwrap();
        assert_eq!((&record["type"], &record["target"]["name"]), (&json!("mcp_tool_call"), &json!("feed")), "{form}");
        assert_eq!(record["data"]["request"]["params"]["name"], "feed", "{form}");
        let page = guarded.send(Request::new("GET", "/metrics")).await.text().await;
        let counted = page.lines().find(|line| line.starts_with("toolhive_mcp_tool_calls_total{"));
        let counted = counted.unwrap_or_else(|| panic!("{form}: {page}"));
        assert!(counted.contains("tool=\"feed\"") && counted.ends_with(&format!("}} {count}")), "{form}: {counted}");
    }
}

#[tokio::test]
async fn each_message_of_a_batch_is_recorded_with_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = Guarded::new(chain(settings(&folder)), |seen| {
        let answer = |message: &Value| match message["id"].as_u64() {
            Some(2) => json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -3, "message": "no"}}),
            _ => json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}),
        };
        reply(200, &[("content-type", "application/json")], answer(&seen.json()).to_string())
    })
    .await;
    let batch = json!([request(1, "ping", &json!({})), call(2, "feed"), request(3, "prompts/list", &json!({}))]);
    guarded.send(Request::post(&batch)).await.text().await;
    let records = records(&folder, 3).await;
    let told: Vec<_> = records.iter().map(|record| (record["type"].as_str(), record["outcome"].as_str())).collect();
    let expected = [
        (Some("mcp_ping"), Some("success")),
        (Some("mcp_tool_call"), Some("application_error")),
        (Some("mcp_prompts_list"), Some("success")),
    ];
    assert_eq!(told, expected);
    assert_eq!(records[1]["metadata"]["extra"]["jsonrpc_error_code"], -3);
}

#[tokio::test]
async fn an_answer_that_nobody_hears_to_its_end_is_an_error_unless_it_was_given() {
    const PROGRESS: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n";
    const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n";
    for detects_errors in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        // The streams of the server, which last until the test drops them.
        let (sender, mut streams) = tokio::sync::mpsc::unbounded_channel();
        let audit = AuditSettings { detects_errors, ..settings(&folder) };
        let guarded = Guarded::new(chain(audit), move |seen| {
            let message = seen.json();
            if message["method"] != "tools/call" {
                return with_tools(seen);
            }
            let (parts, receiver) = tokio::sync::mpsc::unbounded_channel();
            parts.send(if message["id"] == 1 { PROGRESS } else { ANSWER }).unwrap();
            sender.send(parts).unwrap();
            stream(&[("content-type", "text/event-stream")], receiver)
        })
        .await;
        // The client goes away in the middle.
        let mut answer = guarded.send(Request::post(&call(1, "feed"))).await;
        assert!(answer.event().await.unwrap().contains("progress"));
        drop(answer);
        assert_eq!(records(&folder, 1).await[0]["outcome"], "error");
        drop(streams.try_recv().unwrap());
        // It hears the end.
        let mut answer = guarded.send(Request::post(&call(2, "feed"))).await;
        drop(streams.try_recv().unwrap());
        assert_eq!(answer.text().await, ANSWER);
        assert_eq!(records(&folder, 2).await[1]["outcome"], "success");
        // It has what it asked for, and does not wait for the end.
        let mut answer = guarded.send(Request::post(&call(2, "feed"))).await;
        assert!(answer.event().await.unwrap().contains("result"));
        drop(answer);
        assert_eq!(records(&folder, 3).await[2]["outcome"], "success");
    }
}

/// Whoever listens does so for hours, and goes away in the end.
#[tokio::test]
async fn a_stream_of_changes_is_recorded_when_it_begins_and_not_again() {
    const EVENT: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n";
    for has_answers in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (sender, mut streams) = tokio::sync::mpsc::unbounded_channel();
        let audit = AuditSettings { has_answers, ..settings(&folder) };
        let guarded = Guarded::new(chain(audit), move |seen| {
            if seen.json()["method"] != "subscriptions/listen" {
                return with_tools(seen);
            }
            let (parts, receiver) = tokio::sync::mpsc::unbounded_channel();
            parts.send(EVENT).unwrap();
            sender.send(parts).unwrap();
            stream(&[("content-type", "text/event-stream")], receiver)
        })
        .await;
        let listen = || modern("l", "subscriptions/listen", json!({"notifications": {}}));
        let mut answer = guarded.send(listen()).await;
        assert!(answer.event().await.unwrap().contains("acknowledged"));
        let first = records(&folder, 1).await.remove(0);
        assert_eq!((&first["type"], &first["outcome"]), (&json!("mcp_request"), &json!("success")));
        let target = json!({"endpoint": "/mcp", "method": "subscriptions/listen", "type": "endpoint"});
        assert_eq!((&first["target"], &first["data"]), (&target, &Value::Null));
        assert_eq!(first["metadata"]["extra"]["response_size_bytes"], Value::Null);
        // It is open still, and ends with its client.
        let parts = streams.try_recv().unwrap();
        drop(answer);
        tokio::time::timeout(PATIENCE, parts.closed()).await.unwrap();
        guarded.send(Request::post(&call(2, "feed"))).await.text().await;
        let types: Vec<Value> = records(&folder, 2).await.iter().map(|record| record["type"].clone()).collect();
        assert_eq!(types, ["mcp_request", "mcp_tool_call"]);
    }
}

#[tokio::test]
async fn no_record_is_lost_when_the_proxy_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut guarded = Guarded::new(chain(settings(&folder)), |seen| match seen.json()["params"]["name"].as_str() {
        Some(_) => with_tools(seen),
        None => reply(200, &[("content-type", "text/event-stream")], ": alive\n\n"),
    })
    .await;
    let held = guarded.server.hold();
    let address = guarded.before.address.clone();
    let calls: Vec<_> = (0..30)
        .map(|id| {
            let request = match id % 3 {
                0 => Request::new("GET", "/mcp").header("Accept", "text/event-stream"),
                _ => Request::post(&call(id, "feed")),
            };
            let address = address.clone();
            tokio::spawn(async move { request.send(&address).await.text().await })
        })
        .collect();
    let mut arrived = 0;
    let waiting = async {
        while arrived < calls.len() {
            arrived += guarded.server.seen().len();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    // All of them are under way when it is asked to stop, and they may finish.
    let stopping = guarded.before.stop();
    let releasing = async {
        tokio::task::yield_now().await;
        drop(held);
    };
    tokio::join!(stopping, releasing);
    // Nothing is written any more: the proxy is gone.
    let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    let types: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].take()).collect();
    let count = |kind: &str| types.iter().filter(|known| *known == kind).count();
    assert_eq!((types.len(), count("mcp_tool_call"), count("sse_connection")), (30, 20, 10));
    for call in calls {
        call.await.unwrap();
    }
}
