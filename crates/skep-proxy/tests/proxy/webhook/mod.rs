//! Callbacks, seen from three ends: the client, the server and the callback.

mod failures;
mod repeated;
mod secure;

use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::fetch::TlsFiles;
use skep_proxy::middleware::{
    Authentication, Authorizer, CedarSettings, ClaimMapping, FailurePolicy, PdpSettings, Power, Secret, Shown, Step,
    ToolRules, WebhookSettings, Webhooks,
};
use skep_proxy::transparent::Dialect;

use crate::authz::{guarded, hive};
use crate::http::{Request, call, modern, request};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

pub(crate) fn settings(callback: &str, failure_policy: FailurePolicy) -> WebhookSettings {
    WebhookSettings {
        name: "hook".to_owned(),
        url: format!("http://{callback}/hook"),
        timeout: Duration::from_secs(30),
        failure_policy,
        tls: TlsFiles { is_unverified: true, ..TlsFiles::default() },
        secret: None,
    }
}

pub(crate) fn step(power: Power, settings: Vec<WebhookSettings>) -> Step {
    Step::Webhooks(Webhooks::new(power, settings, "hive", "streamable-http").unwrap())
}

/// A proxy whose callbacks stand before what `behind` says.
pub(super) async fn proxy(server: &Server, hooks: Vec<Step>, behind: Vec<Step>) -> Before {
    let mut steps = vec![Step::Authenticate(Authentication::Anonymous), Step::Parse];
    steps.extend(hooks);
    steps.extend(behind);
    guarded(server, Dialect::Streamable, steps).await
}

fn allowing(_: &Seen) -> Reply {
    reply(200, &[], r#"{"version":"v0.1.0","uid":"x","allowed":true}"#)
}

pub(crate) fn patching(patch: &Value) -> impl Fn(&Seen) -> Reply + Send + Sync + use<> {
    let answer = json!({"allowed": true, "patch_type": "json_patch", "patch": patch}).to_string();
    move |_| reply(200, &[], answer.clone())
}

/// A callback that has another tool called.
pub(crate) async fn renaming(to: &str) -> Server {
    Server::start(patching(&rename(to))).await
}

fn rename(to: &str) -> Value {
    json!([{"op": "replace", "path": "/mcp_request/params/name", "value": to}])
}

#[tokio::test]
async fn a_callback_is_told_who_asks_for_what_and_signs_of_it() {
    let (server, hook) = (Server::start(hive).await, Server::start(allowing).await);
    let signed = WebhookSettings {
        secret: Some(Secret::Value(b"hunter2".to_vec())),
        ..settings(&hook.address, FailurePolicy::Fail)
    };
    let before = proxy(&server, vec![step(Power::Refuse, vec![signed])], vec![]).await;
    assert_eq!(
        before.send(Request::post(&call(7, "weigh")).header("Authorization", "Bearer s3cret")).await.status,
        200
    );
    let told = hook.seen().remove(0);
    assert_eq!((told.method.as_str(), told.target.as_str()), ("POST", "/hook"));
    assert_eq!(told.header("content-type"), Some("application/json"));
    let seconds = told.header("x-toolhive-timestamp").unwrap().to_owned();
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"hunter2");
    let signed = [format!("{seconds}.").as_bytes(), &told.body].concat();
    let signature = hex::decode(told.header("x-toolhive-signature").unwrap().strip_prefix("sha256=").unwrap()).unwrap();
    aws_lc_rs::hmac::verify(&key, &signed, &signature).unwrap();
    let document = told.json();
    assert_eq!(document["version"], "v0.1.0");
    assert_eq!(document["principal"]["sub"], "anonymous");
    assert_eq!(document["mcp_request"], call(7, "weigh"));
    assert_eq!(
        (&document["context"]["server_name"], &document["context"]["transport"]),
        (&json!("hive"), &json!("streamable-http"))
    );
    assert!(!String::from_utf8_lossy(&told.body).contains("s3cret"));
}

#[tokio::test]
async fn trap_52_what_comes_later_sees_the_changed_request() {
    let policies = vec![r#"permit(principal, action, resource == Tool::"weigh");"#.to_owned()];
    let authorizer = || {
        Step::Authorize(
            Authorizer::cedar(CedarSettings { policies: policies.clone(), ..CedarSettings::default() }).unwrap(),
        )
    };
    let server = Server::start(hive).await;
    for (asked, changed, expected) in [("burn", "weigh", 200), ("weigh", "burn", 403)] {
        let (mutating, validating) = (Server::start(patching(&rename(changed))).await, Server::start(allowing).await);
        let hooks = vec![
            step(Power::Change, vec![settings(&mutating.address, FailurePolicy::Fail)]),
            step(Power::Refuse, vec![settings(&validating.address, FailurePolicy::Fail)]),
        ];
        let before = proxy(&server, hooks, vec![authorizer()]).await;
        for request in [Request::post(&call(7, asked)), modern(7, "tools/call", json!({"name": asked}))] {
            assert_eq!(before.send(request).await.status, expected, "{asked} as {changed}");
            assert_eq!(validating.seen()[0].json()["mcp_request"]["params"]["name"], changed);
            for seen in server.seen().iter().filter(|seen| seen.json()["method"] == "tools/call") {
                assert_eq!(seen.json()["params"]["name"], "weigh");
                // What repeats the name on the way repeats the new one.
                assert!(seen.header("mcp-name").is_none_or(|name| name == "weigh"));
            }
        }
    }
}

/// Calls `weigh` of a client, and the callback makes the argument `hive` another one.
async fn moved(server: &Server, asked: &str, changed: &str, authorizer: Authorizer) -> [u16; 2] {
    let patch = json!([{"op": "replace", "path": "/mcp_request/params/arguments/hive", "value": changed}]);
    let hook = Server::start(patching(&patch)).await;
    let hooks = vec![step(Power::Change, vec![settings(&hook.address, FailurePolicy::Fail)])];
    let before = proxy(server, hooks, vec![Step::Authorize(authorizer)]).await;
    let params = json!({"name": "weigh", "arguments": {"hive": asked}});
    let legacy = before.send(Request::post(&request(7, "tools/call", &params))).await.status;
    [legacy, before.send(modern(7, "tools/call", params)).await.status]
}

#[tokio::test]
async fn trap_52_decisions_are_about_the_arguments_that_callbacks_have_made() {
    let server = Server::start(hive).await;
    let decides = |seen: &Seen| {
        let may = seen.json()["context"]["mcp"]["args"] == json!({"hive": "north"});
        reply(200, &[("content-type", "application/json")], json!({"allow": may}).to_string())
    };
    let point = Server::start(decides).await;
    let cedar = || {
        let policy = r#"permit(principal, action, resource) when { context.arg_hive == "north" };"#;
        Authorizer::cedar(CedarSettings { policies: vec![policy.to_owned()], ..CedarSettings::default() }).unwrap()
    };
    let asking = || {
        Authorizer::pdp(PdpSettings {
            url: format!("http://{}", point.address),
            timeout: None,
            is_unverified: false,
            tells_arguments: true,
            tells_operation: false,
            claims: ClaimMapping::Standard,
            server: "hive".to_owned(),
        })
        .unwrap()
    };
    for (asked, changed, expected) in [("south", "north", 200), ("north", "south", 403)] {
        for (how, authorizer) in [("policies", cedar()), ("a decision point", asking())] {
            let met = moved(&server, asked, changed, authorizer).await;
            assert_eq!(met, [expected; 2], "{asked} as {changed}, by {how}");
            for seen in server.seen().iter().filter(|seen| seen.json()["method"] == "tools/call") {
                assert_eq!(seen.json()["params"]["arguments"]["hive"], "north");
            }
        }
    }
}

#[tokio::test]
async fn callbacks_are_asked_in_order_and_see_what_those_before_them_did() {
    let server = Server::start(hive).await;
    let (first, second) =
        (Server::start(patching(&rename("look"))).await, Server::start(patching(&rename("weigh"))).await);
    let hooks = [&first, &second].map(|hook| settings(&hook.address, FailurePolicy::Fail)).to_vec();
    let before = proxy(&server, vec![step(Power::Change, hooks)], vec![]).await;
    assert_eq!(before.send(Request::post(&call(7, "burn"))).await.status, 200);
    let (one, two) = (first.seen()[0].json(), second.seen()[0].json());
    assert_eq!(
        (&one["mcp_request"]["params"]["name"], &two["mcp_request"]["params"]["name"]),
        (&json!("burn"), &json!("look"))
    );
    assert_ne!(one["uid"], two["uid"], "each question of one that changes is its own");
    assert_eq!(server.seen().last().unwrap().json()["params"]["name"], "weigh");
}

#[tokio::test]
async fn every_message_of_a_batch_is_asked_about() {
    let server = Server::start(hive).await;
    let hook = Server::start(|seen: &Seen| {
        let may = seen.json()["mcp_request"]["params"]["name"] != "burn";
        reply(200, &[], json!({"allowed": may}).to_string())
    })
    .await;
    let hooks = vec![step(Power::Refuse, vec![settings(&hook.address, FailurePolicy::Fail)])];
    let before = proxy(&server, hooks, vec![]).await;
    let mut refused = before.send(Request::post(&json!([call(1, "weigh"), call(2, "burn")])).plain()).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.text().await,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":403,"message":"Request denied by policy"}}"#
    );
    assert!(server.seen().is_empty());
    assert_eq!(before.send(Request::post(&json!([call(1, "weigh"), call(2, "look")])).plain()).await.status, 200);
}

#[tokio::test]
async fn nothing_passes_that_callbacks_were_not_asked_about() {
    let server = Server::start(hive).await;
    let hook = Server::start(|_: &Seen| reply(200, &[], r#"{"allowed":false}"#)).await;
    let hooks = vec![step(Power::Refuse, vec![settings(&hook.address, FailurePolicy::Fail)])];
    let before = proxy(&server, hooks, vec![]).await;
    let burn = call(7, "burn");
    for (request, expected) in [
        (Request::post(&burn).instead("Content-Type", "text/plain"), 403),
        (Request::new("PUT", "/mcp").body(burn.to_string()), 403),
        (Request::post(&burn).body(format!("\u{feff}{burn}")), 400),
        (Request::post(&call(7, &"x".repeat(1 << 20))), 413),
        (
            Request::post(&burn).body(burn.to_string().replacen(
                r#""name":"#,
                r#""arguments":{"a":1,"a":2},"name":"#,
                1,
            )),
            400,
        ),
    ] {
        let mut answer = before.send(request).await;
        let text = answer.text().await;
        assert_eq!(answer.status, expected, "{text}");
        assert!(server.seen().is_empty());
    }
}

#[tokio::test]
async fn a_callback_cannot_call_a_tool_that_is_hidden() {
    let server = Server::start(hive).await;
    let rules = ToolRules::new(
        vec!["scale".to_owned()],
        [("weigh".to_owned(), Shown { name: "scale".to_owned(), ..Shown::default() })].into(),
    );
    let rules = rules.unwrap();
    for (changed, expected) in [("weigh", "content"), ("burn", "tool not found")] {
        let hook = Server::start(patching(&rename(changed))).await;
        let steps = vec![
            Step::Authenticate(Authentication::Anonymous),
            Step::ToolCalls(rules.clone()),
            step(Power::Change, vec![settings(&hook.address, FailurePolicy::Fail)]),
        ];
        let before = guarded(&server, Dialect::Streamable, steps).await;
        let text = before.send(Request::post(&call(7, "scale")).plain()).await.text().await;
        assert!(text.contains(expected), "{changed}: {text}");
        assert!(server.seen().iter().all(|seen| seen.json()["params"]["name"] != "burn"));
    }
}
