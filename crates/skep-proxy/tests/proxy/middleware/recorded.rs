//! What is recorded of streams, and what is to be recorded at all.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{Audit, AuditSettings, Authentication, Oidc, Step};
use skep_proxy::transparent::Dialect;

use super::audit::{records, settings};
use super::auth::issuer::{Issuer, Key};
use super::{Guarded, rules, with_tools};
use crate::http::{Request, call, request};
use crate::transparent::server::{Reply, Seen, reply};

const STREAM: (&str, &str) = ("content-type", "text/event-stream");

/// What is recorded of whoever has proved who they are and of whoever has not.
fn chain(settings: AuditSettings, issuer: &Issuer) -> Vec<Step> {
    vec![
        Step::Audit(Audit::new(settings).unwrap()),
        Step::Authenticate(Authentication::Oidc(Box::new(Oidc::new(&issuer.settings()).unwrap()))),
        Step::ToolCalls(rules(&["feed"], &[])),
        Step::Parse,
        Step::Recover,
    ]
}

fn listen(path: &str) -> Request {
    Request::new("GET", path).header("Accept", "text/event-stream")
}

/// A stream with several events, or the status that the path ends with.
fn streaming(seen: &Seen) -> Reply {
    let status = seen.target.rsplit('/').next().and_then(|number| number.parse().ok());
    status.map_or_else(|| reply(200, &[STREAM], ": alive\n\n".repeat(5)), |status| reply(status, &[], "no"))
}

#[tokio::test]
async fn trap_56_the_beginning_of_a_stream_is_recorded_once_with_how_it_really_began() {
    let (folder, key) = (tempfile::tempdir().unwrap(), Key::new("k", Algorithm::ES256));
    let issuer = Issuer::start(&[&key]).await;
    let audit = AuditSettings { transport: "sse".to_owned(), ..settings(&folder) };
    let guarded = Guarded::new(chain(audit, &issuer), streaming).await;
    let token = format!("Bearer {}", key.sign(&issuer.claims()));
    for (number, (path, is_proved, status, outcome)) in [
        ("/sse", true, 200, "success"),
        ("/sse", false, 401, "denied"),
        ("/sse/403", true, 403, "denied"),
        ("/sse/409", true, 409, "failure"),
        ("/sse/500", true, 500, "error"),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = if is_proved { listen(path).header("Authorization", &token) } else { listen(path) };
        let mut answer = guarded.send(stream).await;
        let text = answer.text().await;
        assert_eq!(answer.status, status, "{path}: {text}");
        let all = records(&folder, number + 1).await;
        assert_eq!(all.len(), number + 1, "{path} {status}");
        let record = &all[number];
        assert_eq!((&record["type"], &record["outcome"]), (&json!("sse_connection"), &json!(outcome)), "{path}");
        let target = json!({"endpoint": path, "method": "GET", "type": "sse_endpoint"});
        let who = if is_proved { json!("ann") } else { Value::Null };
        assert_eq!((&record["target"], &record["subjects"]["user_id"]), (&target, &who), "{path}");
    }
    // What asks for no events is no stream.
    guarded.send(Request::new("GET", "/other").header("Authorization", &token)).await.text().await;
    assert_eq!(records(&folder, 6).await.len(), 6);
}

#[tokio::test]
async fn trap_56_a_stream_whose_server_is_away_is_recorded_once_as_an_error() {
    let (folder, key) = (tempfile::tempdir().unwrap(), Key::new("k", Algorithm::ES256));
    let issuer = Issuer::start(&[&key]).await;
    let guarded = Guarded::of(Dialect::Sse, chain(settings(&folder), &issuer), streaming).await;
    let Guarded { server, before, .. } = guarded;
    server.end().await;
    let token = format!("Bearer {}", key.sign(&issuer.claims()));
    let mut answer = before.send(listen("/sse").header("Authorization", &token)).await;
    answer.text().await;
    assert!(answer.status >= 500, "{}", answer.status);
    let all = records(&folder, 1).await;
    let told: Vec<_> = all.iter().map(|record| (&record["outcome"], &record["subjects"]["user_id"])).collect();
    assert_eq!(told, [(&json!("error"), &json!("ann"))]);
}

#[tokio::test]
async fn trap_56_nothing_is_recorded_of_types_that_are_left_out() {
    let (folder, key) = (tempfile::tempdir().unwrap(), Key::new("k", Algorithm::ES256));
    let issuer = Issuer::start(&[&key]).await;
    let types = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    // Whether it is left out by name, or not among those that are wanted.
    let audit = AuditSettings {
        types: types(&["mcp_tool_call", "mcp_ping", "sse_connection", "mcp_prompts_list"]),
        excluded: types(&["mcp_tool_call", "sse_connection", "mcp_ping"]),
        transport: "sse".to_owned(),
        ..settings(&folder)
    };
    let guarded = Guarded::new(chain(audit, &issuer), |seen| match seen.method.as_str() {
        "GET" => streaming(seen),
        _ => with_tools(seen),
    })
    .await;
    let token = format!("Bearer {}", key.sign(&issuer.claims()));
    let post = |message: &Value| Request::post(message).header("Authorization", &token);
    for (what, status, request) in [
        ("a stream", 200, listen("/sse").header("Authorization", &token)),
        ("a refused stream", 401, listen("/sse")),
        ("a broken stream", 500, listen("/sse/500").header("Authorization", &token)),
        ("a call", 200, post(&call(1, "feed"))),
        ("a refused call", 401, Request::post(&call(1, "feed"))),
        ("a hidden call", 200, post(&call(2, "secret"))),
        ("a list", 200, post(&request(3, "tools/list", &json!({})))),
        ("a ping", 200, post(&request(4, "ping", &json!({})))),
        ("what is wanted", 200, post(&request(5, "prompts/list", &json!({})))),
    ] {
        let mut answer = guarded.send(request).await;
        answer.text().await;
        assert_eq!(answer.status, status, "{what}");
    }
    let all = records(&folder, 1).await;
    assert_eq!(all.iter().map(|record| record["type"].clone()).collect::<Vec<_>>(), ["mcp_prompts_list"]);
    let unknown = AuditSettings { types: types(&["mcp_tea_break"]), ..settings(&folder) };
    assert!(Audit::new(unknown).unwrap_err().to_string().contains("mcp_tea_break"));
    let nowhere = AuditSettings { file: Some("/no/such/folder/log".into()), ..settings(&folder) };
    assert!(Audit::new(nowhere).unwrap_err().to_string().contains("logFile /no/such/folder/log"));
}
