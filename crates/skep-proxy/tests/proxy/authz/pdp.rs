//! A decision point that is asked over HTTP, and everything that can be wrong with it.

use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::middleware::{Authorizer, ClaimMapping, PdpSettings};
use skep_proxy::transparent::Dialect;

use super::{guarded, hive, steps};
use crate::http::{Request, call, modern, request};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

async fn asking(url: &str, server: &Server) -> Before {
    let settings = PdpSettings {
        url: url.to_owned(),
        timeout: Some(Duration::from_secs(1)),
        is_unverified: false,
        tells_arguments: true,
        tells_operation: true,
        claims: ClaimMapping::Standard,
        server: "hive".to_owned(),
    };
    guarded(server, Dialect::Streamable, steps(Authorizer::pdp(settings).unwrap())).await
}

/// Allows `weigh` and nothing else.
fn strict(seen: &Seen) -> Reply {
    let may = seen.json()["resource"] == "mrn:mcp:hive:tool:weigh";
    reply(200, &[("content-type", "application/json")], json!({"allow": may}).to_string())
}

#[tokio::test]
async fn calls_and_lists_are_decided_one_by_one() {
    let (server, pdp) = (Server::start(hive).await, Server::start(strict).await);
    let before = asking(&format!("http://{}/v1", pdp.address), &server).await;
    let mut weigh = call(7, "weigh");
    weigh["params"]["arguments"] = json!({"hive": "north"});
    assert_eq!(before.send(Request::post(&weigh)).await.status, 200);
    let asked = pdp.seen();
    assert_eq!((asked[0].method.as_str(), asked[0].target.as_str()), ("POST", "/v1/decision"));
    let document = asked[0].json();
    assert_eq!(document["principal"]["sub"], "anonymous");
    assert_eq!(document["operation"], "mcp:tool:call");
    assert_eq!(document["context"]["mcp"]["args"], json!({"hive": "north"}));
    assert_eq!(before.send(Request::post(&call(7, "burn"))).await.status, 403);
    let listed = before.send(Request::post(&request(7, "tools/list", &json!({}))).plain()).await.json().await;
    let names: Vec<&Value> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["weigh"]);
    let hinted = pdp.seen().into_iter().find(|seen| seen.json()["resource"] == "mrn:mcp:hive:tool:look").unwrap();
    assert_eq!(hinted.json()["context"]["mcp"]["annotations"], json!({"readOnlyHint": true}));
}

#[tokio::test]
async fn whatever_is_no_clear_yes_is_a_no() {
    let server = Server::start(hive).await;
    let pdp = Server::start(strict).await;
    let before = asking(&format!("http://{}", pdp.address), &server).await;
    let refused = async |failure: &str| {
        assert_eq!(before.send(Request::post(&call(7, "weigh"))).await.status, 403, "{failure}");
        assert!(server.seen().is_empty(), "{failure}");
    };
    for (failure, status, body) in [
        ("garbage", 200, "<html>".to_owned()),
        ("nothing", 200, String::new()),
        ("another type", 200, r#"{"allow":"true"}"#.to_owned()),
        ("a failure that says yes", 500, r#"{"allow":true}"#.to_owned()),
        ("another success", 201, r#"{"allow":true}"#.to_owned()),
        ("ten megabytes", 200, format!(r#"{{"allow":true,"x":"{}"}}"#, "x".repeat(10 << 20))),
    ] {
        pdp.replace(move |_| reply(status, &[], body.clone()));
        refused(failure).await;
    }
    // It would say yes elsewhere.
    pdp.replace(|seen| match seen.target.as_str() {
        "/decision" => reply(307, &[("location", "/yes")], ""),
        _ => reply(200, &[], r#"{"allow":true}"#),
    });
    refused("a redirect").await;
    pdp.end().await;
    refused("nobody there").await;
}

/// What a client says that wants to hear of changes of so many resources.
fn listen(many: usize) -> Request {
    let uris: Vec<String> = (0..many).map(|number| format!("hive://{number}")).collect();
    modern(7, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}))
}

#[tokio::test]
async fn whoever_listens_makes_no_more_work_than_it_takes_to_refuse() {
    let (server, pdp) = (Server::start(hive).await, Server::start(strict).await);
    let before = asking(&format!("http://{}", pdp.address), &server).await;
    let told = r#"{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"Unauthorized"}}"#;
    for (many, questions) in [(257, 0..=0), (100_000, 0..=0), (256, 1..=16), (1, 1..=1)] {
        let mut refused = before.send(listen(many)).await;
        assert_eq!((refused.status, refused.text().await.as_str()), (403, told), "{many}");
        let asked = pdp.seen().len();
        assert!(questions.contains(&asked), "{many}: {asked} questions");
    }
    // Whatever is named twice is asked about once.
    let same = vec!["hive://1"; 200];
    let again = modern(7, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": same}}));
    assert_eq!(before.send(again).await.status, 403);
    assert_eq!(pdp.seen().len(), 1);
    assert!(server.seen().is_empty());
}
