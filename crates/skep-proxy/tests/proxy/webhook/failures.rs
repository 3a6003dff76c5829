//! Everything that can be wrong with a callback, and what comes of it.

use serde_json::{Value, json};
use skep_proxy::middleware::{FailurePolicy, Power};
use tracing::Level;

use super::{proxy, settings, step};
use crate::authz::hive;
use crate::http::{Request, call};
use crate::transparent::server::{Reply, Server, reply};
use crate::warnings::Warnings;

const POWERS: [Power; 2] = [Power::Refuse, Power::Change];
const POLICIES: [FailurePolicy; 2] = [FailurePolicy::Fail, FailurePolicy::Ignore];

/// What is wrong with an answer, by its name.
type Failure = (&'static str, fn() -> Reply);
/// The status, code and words of a refusal.
type Told = (u16, i64, &'static str);

const DENIED: [Told; 2] = [(403, 403, "Request denied by policy"), (403, 403, "Request denied by webhook policy")];
const UNPROCESSABLE: [Told; 2] =
    [(403, 403, "Request denied by policy"), (422, 403, "Request denied by webhook policy")];
const FAILED: [Told; 2] = [(403, 403, "Request denied by policy"), (500, -32603, "Webhook error")];

/// Checks what a client is told whose callback is at `address`, and that the server is asked only when nothing is wrong.
async fn check(failure: &str, address: &str, power: Power, policy: FailurePolicy, expected: Option<Told>) {
    let row = format!("{failure}, {power:?}, {policy:?}");
    let server = Server::start(hive).await;
    let before = proxy(&server, vec![step(power, vec![settings(address, policy)])], vec![]).await;
    let mut answer = before.send(Request::post(&call("seven", "weigh")).plain()).await;
    let text = answer.text().await;
    assert!(!text.contains("hunter2"), "{row}: {text}");
    match expected {
        None => assert_eq!((answer.status, server.seen().len()), (200, 1), "{row}: {text}"),
        Some((status, code, words)) => {
            let error = json!({"jsonrpc": "2.0", "id": "seven", "error": {"code": code, "message": words}});
            assert_eq!((answer.status, serde_json::from_str::<Value>(&text).unwrap()), (status, error), "{row}");
            assert!(server.seen().is_empty(), "{row}");
        }
    }
}

#[tokio::test]
async fn a_callback_that_fails_is_followed_by_its_policy() {
    let answers: [Failure; 8] = [
        ("garbage", || reply(200, &[], "<html>hunter2")),
        ("no verdict", || reply(200, &[], r#"{"allowed":"yes","message":"hunter2"}"#)),
        ("nothing", || reply(200, &[], "")),
        ("a failure", || reply(500, &[], r#"{"allowed":true,"message":"hunter2"}"#)),
        ("not found", || reply(404, &[], "hunter2")),
        ("another success", || reply(204, &[], "")),
        ("a redirect", || reply(307, &[("location", "/elsewhere")], "")),
        ("ten megabytes", || reply(200, &[], format!(r#"{{"allowed":true,"message":"{}"}}"#, "x".repeat(10 << 20)))),
    ];
    for (failure, answer) in answers {
        let hook = Server::start(move |seen| match seen.target.as_str() {
            "/hook" => answer(),
            _ => reply(200, &[], r#"{"allowed":true}"#),
        })
        .await;
        for (power, failed) in POWERS.into_iter().zip(FAILED) {
            check(failure, &hook.address, power, FailurePolicy::Fail, Some(failed)).await;
            check(failure, &hook.address, power, FailurePolicy::Ignore, None).await;
        }
    }
}

#[tokio::test]
async fn trap_53_a_no_is_a_no_under_every_policy() {
    let no = Server::start(|_| reply(200, &[], r#"{"allowed":false,"message":"hunter2","reason":"hunter2"}"#)).await;
    // Whoever does not say yes says no.
    let nothing = Server::start(|_| reply(200, &[], r#"{"message":"hunter2"}"#)).await;
    // However much it has to say about it.
    let cannot = Server::start(|_| reply(422, &[], "hunter2".repeat(1 << 20))).await;
    for policy in POLICIES {
        for (index, power) in POWERS.into_iter().enumerate() {
            check("no", &no.address, power, policy, Some(DENIED[index])).await;
            check("no yes", &nothing.address, power, policy, Some(DENIED[index])).await;
            check("422", &cannot.address, power, policy, Some(UNPROCESSABLE[index])).await;
        }
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_made_is_followed_by_the_policy() {
    for (patch_type, patch, words) in [
        ("merge", json!([1]), "Unsupported patch type from webhook"),
        ("json_patch", json!({"op": "add"}), "Malformed patch from webhook"),
        ("json_patch", json!([{"op": "add", "path": "/mcp_request/x"}]), "Invalid patch from webhook"),
        (
            "json_patch",
            json!([{"op": "remove", "path": "/context/server_name"}]),
            "Patch must be scoped to mcp_request",
        ),
        ("json_patch", json!([{"op": "remove", "path": "/mcp_request/x"}]), "Failed to apply patch from webhook"),
    ] {
        let answer = json!({"allowed": true, "patch_type": patch_type, "patch": patch}).to_string();
        let hook = Server::start(move |_| reply(200, &[], answer.clone())).await;
        check(words, &hook.address, Power::Change, FailurePolicy::Fail, Some((500, -32603, words))).await;
        check(words, &hook.address, Power::Change, FailurePolicy::Ignore, None).await;
        // One that may only refuse changes nothing, whatever it says.
        check(words, &hook.address, Power::Refuse, FailurePolicy::Fail, None).await;
    }
}

#[tokio::test]
async fn trap_24_what_a_change_makes_has_to_be_one_request() {
    let no_request = "Webhook produced an invalid MCP request";
    for (op, path, value) in [
        ("remove", "/mcp_request/method", Value::Null),
        ("replace", "/mcp_request/id", json!(8)),
        ("replace", "/mcp_request/params", json!(7)),
    ] {
        let patch = json!([{"op": op, "path": path, "value": value}]);
        let answer = json!({"allowed": true, "patch_type": "json_patch", "patch": patch}).to_string();
        let hook = Server::start(move |_| reply(200, &[], answer.clone())).await;
        for policy in POLICIES {
            let log = Warnings::listen();
            check(path, &hook.address, Power::Change, policy, Some((500, -32603, no_request))).await;
            let log = log.take();
            let told = |line: &String| line.contains("webhook=\"hook\" cause=") && line.contains("cannot be used");
            assert_eq!(log.iter().filter(|line| told(line)).count(), 1, "{path}: {log:?}");
        }
    }
}

#[tokio::test]
async fn a_callback_that_may_fail_is_told_once_when_it_does_and_once_when_it_does_not_any_more() {
    for power in POWERS {
        let (server, hook) = (Server::start(hive).await, Server::start(|_| reply(500, &[], "")).await);
        let hooks = vec![step(power, vec![settings(&hook.address, FailurePolicy::Ignore)])];
        let before = proxy(&server, hooks, vec![]).await;
        let log = Warnings::down_to(Level::INFO);
        let told = || log.take().into_iter().filter(|text| text.contains("a webhook")).collect::<Vec<_>>();
        let ask = async || assert_eq!(before.send(Request::post(&call(1, "weigh")).plain()).await.status, 200);
        for _ in 0..5 {
            ask().await;
        }
        let failing = told();
        assert!(failing.len() == 1 && failing[0].contains("a webhook fails, and requests pass"), "{failing:?}");
        hook.replace(|_| reply(200, &[], r#"{"allowed":true}"#));
        for _ in 0..3 {
            ask().await;
        }
        let well = told();
        assert!(well.len() == 1 && well[0].contains("a webhook does not fail any more"), "{well:?}");
    }
}
