//! Pages that a server has besides its messages, for somebody who may do nothing.

use serde_json::json;
use skep_proxy::middleware::{Audit, Authentication, FailurePolicy, Power, Step};
use skep_proxy::transparent::Dialect;

use super::{authorizer, guarded};
use crate::http::{Request, initialize};
use crate::middleware::audit::{records, settings};
use crate::transparent::server::{Reply, Seen, Server, reply, with_sessions};
use crate::webhook;

const REFUSED: &str = r#"{"jsonrpc":"2.0","error":{"code":403,"message":"Unauthorized"}}"#;

/// A server with sessions at `/mcp`, and with pages.
fn with_pages() -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let sessions = with_sessions("a");
    move |seen| match (seen.method.as_str(), seen.target.as_str()) {
        ("GET", "/mcp" | "/sse") => reply(200, &[("content-type", "text/event-stream; charset=utf-8")], "data: {}\n\n"),
        ("GET", "/moved") => reply(303, &[("location", "/honey"), ("content-type", "text/event-stream")], "honey"),
        ("GET", "/none") => reply(404, &[("content-type", "text/plain")], "no such page"),
        (_, "/mcp") => sessions(seen),
        _ => reply(200, &[("content-type", "application/json"), ("x-honey", "1")], r#"{"honey":1}"#),
    }
}

/// Chains in which somebody decides by messages.
fn judging(hook: &Server) -> Vec<(&'static str, Step)> {
    let hooks = |power| webhook::step(power, vec![webhook::settings(&hook.address, FailurePolicy::Fail)]);
    vec![
        ("policies", Step::Authorize(authorizer(&["guests"]))),
        ("a callback that may refuse", hooks(Power::Refuse)),
        ("a callback that may change", hooks(Power::Change)),
    ]
}

fn steps(judge: Step) -> Vec<Step> {
    vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, judge]
}

async fn hook() -> Server {
    Server::start(|_: &Seen| reply(200, &[], r#"{"allowed":true}"#)).await
}

#[tokio::test]
async fn whoever_may_do_nothing_sees_and_changes_no_page_of_the_server() {
    let hook = hook().await;
    for (name, judge) in judging(&hook) {
        let server = Server::start(with_pages()).await;
        let before = guarded(&server, Dialect::Streamable, steps(judge)).await;
        before.send(Request::post(&initialize("2025-11-25"))).await;
        server.seen();
        for verb in ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
            for path in ["/admin/users", "/mcp", "/sse", "/"] {
                let mut refused = before.send(Request::new(verb, path)).await;
                let told = if verb == "HEAD" { "" } else { REFUSED };
                assert_eq!((refused.status, refused.text().await.as_str()), (403, told), "{name}: {verb} {path}");
            }
        }
        // A session is ended where it is, and is no key to anything else.
        let elsewhere = before.send(Request::new("DELETE", "/admin/users").in_session("a-0")).await;
        assert_eq!(elsewhere.status, 403, "{name}");
        assert_eq!(before.send(Request::new("DELETE", "/admin/users").in_session("b-0")).await.status, 404, "{name}");
        assert!(server.seen().is_empty(), "{name}");
        for path in ["/admin/users", "/moved"] {
            let mut refused = before.send(Request::new("GET", path).header("Accept", "text/event-stream")).await;
            assert_eq!((refused.status, refused.header("x-honey")), (403, None), "{name}: {path}");
            assert_eq!(refused.text().await, REFUSED, "{name}: {path}");
        }
    }
}

#[tokio::test]
async fn what_the_transports_need_passes_by_whoever_decides() {
    let hook = hook().await;
    for (name, judge) in judging(&hook) {
        let server = Server::start(with_pages()).await;
        let before = guarded(&server, Dialect::Streamable, steps(judge)).await;
        before.send(Request::post(&initialize("2025-11-25"))).await;
        for listen in [Request::listen("a-0"), Request::new("GET", "/sse").header("Accept", "text/event-stream")] {
            let mut stream = before.send(listen).await;
            assert_eq!((stream.status, stream.text().await.as_str()), (200, "data: {}\n\n"), "{name}");
        }
        let mut missing = before.send(Request::new("GET", "/none")).await;
        assert_eq!((missing.status, missing.text().await.as_str()), (404, "no such page"), "{name}");
        assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session("a-0")).await.status, 204, "{name}");
        assert_eq!(server.seen().last().unwrap().method, "DELETE", "{name}");
        assert_eq!(before.send(Request::new("GET", "/health")).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn without_anybody_who_decides_every_page_passes() {
    let server = Server::start(with_pages()).await;
    let before = guarded(&server, Dialect::Streamable, vec![Step::Authenticate(Authentication::Anonymous)]).await;
    for verb in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(before.send(Request::new(verb, "/admin/users")).await.json().await, json!({"honey": 1}), "{verb}");
    }
}

#[tokio::test]
async fn what_is_kept_from_pages_is_recorded_as_denied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(with_pages()).await;
    let mut all = vec![Step::Audit(Audit::new(settings(&folder)).unwrap())];
    all.extend(steps(Step::Authorize(authorizer(&["guests"]))));
    let before = guarded(&server, Dialect::Streamable, all).await;
    before.send(Request::post(&initialize("2025-11-25"))).await.text().await;
    let requests = [
        Request::new("PUT", "/admin/users"),
        Request::new("GET", "/admin/users"),
        Request::new("GET", "/admin/users").header("Accept", "text/event-stream"),
        Request::new("DELETE", "/admin/users").in_session("a-0"),
    ];
    for (index, request) in requests.into_iter().enumerate() {
        assert_eq!(before.send(request).await.status, 403);
        let record = records(&folder, index + 2).await.remove(index + 1);
        let (outcome, caller) = (&record["outcome"], &record["subjects"]["user_id"]);
        assert_eq!((outcome, caller), (&json!("denied"), &json!("anonymous")), "{record}");
    }
}
