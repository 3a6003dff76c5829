//! What is recorded of those who are refused, and of what callbacks have made of a request.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{
    Audit, AuditSettings, Authentication, Authorizer, CedarSettings, FailurePolicy, Oidc, Power, Step,
};
use skep_proxy::transparent::Dialect;
use tempfile::TempDir;

use super::{authorizer, guarded, hive};
use crate::http::{Request, call};
use crate::middleware::audit::{records, settings};
use crate::middleware::auth::issuer::{Issuer, Key};
use crate::transparent::server::{Reply, Seen, Server, reply};
use crate::webhook;

fn audit(folder: &TempDir) -> Step {
    Step::Audit(Audit::new(AuditSettings { has_requests: true, ..settings(folder) }).unwrap())
}

#[tokio::test]
async fn trap_25_what_is_smuggled_under_another_type_is_recorded_as_denied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(hive).await;
    let steps = vec![
        audit(&folder),
        Step::Authenticate(Authentication::Anonymous),
        Step::Parse,
        Step::Authorize(authorizer(&["keepers"])),
    ];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    let smuggled = Request::post(&call(7, "weigh")).instead("Content-Type", "text/plain");
    assert_eq!(before.send(smuggled).await.status, 400);
    let record = records(&folder, 1).await.remove(0);
    assert_eq!((&record["outcome"], &record["subjects"]["user_id"]), (&json!("denied"), &json!("anonymous")));
    assert!(server.seen().is_empty());
}

/// Refuses `sting`, the second time around `smoke`, and says that it cannot take `swarm`.
fn picky(seen: &Seen) -> Reply {
    let document = seen.json();
    let has_been_asked = document["mcp_request"]["params"]["arguments"]["seen"] == true;
    let (status, answer) = match document["mcp_request"]["params"]["name"].as_str().unwrap_or_default() {
        "sting" => (200, json!({"allowed": false})),
        "smoke" if has_been_asked => (200, json!({"allowed": false})),
        "swarm" => (422, json!({})),
        _ => {
            let patch = json!([{"op": "add", "path": "/mcp_request/params/arguments/seen", "value": true}]);
            (200, json!({"allowed": true, "patch_type": "json_patch", "patch": patch}))
        }
    };
    reply(status, &[], answer.to_string())
}

#[tokio::test]
async fn trap_56_whoever_refuses_the_record_says_who_asked_for_what() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("k", Algorithm::ES256);
    let (issuer, server, hook) = (Issuer::start(&[&key]).await, Server::start(hive).await, Server::start(picky).await);
    let policies = vec![r#"permit(principal == Client::"ann", action, resource == Tool::"weigh");"#.to_owned()];
    let oidc = Box::new(Oidc::new(&issuer.settings()).unwrap());
    let hooks = |power| webhook::step(power, vec![webhook::settings(&hook.address, FailurePolicy::Fail)]);
    let steps = vec![
        audit(&folder),
        Step::Authenticate(Authentication::Oidc(oidc)),
        Step::Parse,
        hooks(Power::Change),
        hooks(Power::Refuse),
        Step::Authorize(Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap()),
    ];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    let token = format!("Bearer {}", key.sign(&issuer.claims()));
    for (index, (tool, status, outcome)) in [
        ("weigh", 200, "success"),
        // By policy, by the callback that may change, by the one that may not, and by one that cannot take it.
        ("burn", 403, "denied"),
        ("sting", 403, "denied"),
        ("smoke", 403, "denied"),
        ("swarm", 422, "failure"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut answer = before.send(Request::post(&call(7, tool)).plain().header("Authorization", &token)).await;
        let text = answer.text().await;
        assert_eq!(answer.status, status, "{tool}: {text}");
        let records = records(&folder, index + 1).await;
        assert_eq!(records.len(), index + 1, "one for each");
        let record = &records[index];
        assert_eq!(record["outcome"], outcome, "{tool}");
        assert_eq!((&record["subjects"]["user_id"], &record["target"]["name"]), (&json!("ann"), &json!(tool)));
    }
}

#[tokio::test]
async fn trap_52_the_record_is_of_the_request_that_callbacks_have_made() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(hive).await;
    let patch = json!([
        {"op": "replace", "path": "/mcp_request/params/name", "value": "weigh"},
        {"op": "add", "path": "/mcp_request/params/arguments/unit", "value": "kg"},
    ]);
    let answer = json!({"allowed": true, "patch_type": "json_patch", "patch": patch}).to_string();
    let hook = Server::start(move |_| reply(200, &[], answer.clone())).await;
    let steps = vec![
        audit(&folder),
        Step::Authenticate(Authentication::Anonymous),
        Step::Parse,
        webhook::step(Power::Change, vec![webhook::settings(&hook.address, FailurePolicy::Fail)]),
        Step::Authorize(authorizer(&["keepers"])),
    ];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    assert_eq!(before.send(Request::post(&call(7, "burn"))).await.status, 200);
    let record = records(&folder, 1).await.remove(0);
    assert_eq!(record["target"]["name"], "weigh");
    assert_eq!(record["data"]["request"]["params"]["arguments"], json!({"unit": "kg"}));
}

#[tokio::test]
async fn auth_trap_7_the_link_to_a_session_is_told_to_no_callback() {
    let key = Key::new("k", Algorithm::ES256);
    let (issuer, server) = (Issuer::start(&[&key]).await, Server::start(hive).await);
    let hook = Server::start(|_| reply(200, &[], r#"{"allowed":true}"#)).await;
    let oidc = Box::new(Oidc::new(&issuer.settings()).unwrap());
    let steps = vec![
        Step::Authenticate(Authentication::Oidc(oidc)),
        Step::Parse,
        webhook::step(Power::Refuse, vec![webhook::settings(&hook.address, FailurePolicy::Fail)]),
    ];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    let mut claims = issuer.claims();
    claims["tsid"] = json!("a link");
    claims["act"] = json!({"sub": "agent"});
    let token = key.sign(&claims);
    let request = Request::post(&call(7, "weigh")).header("Authorization", &format!("Bearer {token}"));
    assert_eq!(before.send(request).await.status, 200);
    let told = hook.seen().remove(0);
    let principal = &told.json()["principal"];
    assert_eq!((&principal["sub"], &principal["claims"]["aud"]), (&json!("ann"), &claims["aud"]));
    assert_eq!(principal["delegation"]["chain"], json!([{"iss": "", "sub": "agent"}]));
    assert_eq!(principal["claims"]["tsid"], Value::Null);
    let text = String::from_utf8_lossy(&told.body);
    assert!(!text.contains("a link") && !text.contains(&token), "{text}");
}
