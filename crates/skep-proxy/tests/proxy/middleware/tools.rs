//! Tools that are hidden or renamed, where they are called.

use serde_json::{Value, json};
use skep_proxy::middleware::{Annotations, Shown, Step, ToolRules};

use super::{Guarded, names, rules, with_tools};
use crate::authz::has_burnt;
use crate::authz::tricks::{WRITTEN, raw};
use crate::http::{Request, call, modern, request};

fn steps() -> Vec<Step> {
    let rules = rules(&["weigh", "feed"], &[("weigh_hive", "weigh", "Weighs a hive.")]);
    vec![Step::ToolLists(rules.clone()), Step::ToolCalls(rules), Step::Parse, Step::Recover]
}

fn not_found(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "error": {"code": -32602, "message": "tool not found"}})
}

#[tokio::test]
async fn trap_46_a_list_keeps_what_is_around_its_tools() {
    let guarded = Guarded::new(steps(), with_tools).await;
    let mut answer = guarded.send(Request::post(&request(0, "tools/list", &json!({"cursor": "page-1"})))).await;
    let list = answer.json().await;
    assert_eq!(names(&list), ["weigh", "feed"]);
    let result = &list["result"];
    assert_eq!((&result["nextCursor"], &result["_meta"]), (&json!("page-2"), &json!({"a": 1})));
    assert_eq!(result["tools"][0], json!({"name": "weigh", "description": "Weighs a hive.", "x": 100.0}));
    assert_eq!((answer.status, list["id"].clone()), (200, json!(0)));
    assert_eq!(guarded.server.seen()[0].json()["params"]["cursor"], "page-1");
}

#[tokio::test]
async fn a_list_has_the_hints_that_are_set_instead_of_the_servers() {
    let annotations = Annotations { read_only: Some(true), title: Some(String::new()), ..Annotations::default() };
    let shown = Shown { annotations, ..Shown::default() };
    let rules = ToolRules::new(Vec::new(), [("feed".to_owned(), shown)].into()).unwrap();
    let steps = vec![Step::ToolLists(rules.clone()), Step::ToolCalls(rules), Step::Parse, Step::Recover];
    let guarded = Guarded::new(steps, with_tools).await;
    let list = guarded.send(Request::post(&request(0, "tools/list", &json!({})))).await.json().await;
    assert_eq!(names(&list), ["secret", "weigh_hive", "feed"]);
    let tools = &list["result"]["tools"];
    assert_eq!(tools[2], json!({"name": "feed", "annotations": {"title": "", "readOnlyHint": true}}));
    assert_eq!(tools[0], json!({"name": "secret", "inputSchema": {}}));
    let answer = guarded.send(Request::post(&call(7, "feed"))).await.json().await;
    assert_eq!(answer["result"]["called"], "feed");
}

#[tokio::test]
async fn trap_47_a_hidden_tool_is_like_one_that_does_not_exist() {
    let guarded = Guarded::new(steps(), with_tools).await;
    for name in ["secret", "no-such-tool", "weigh_hive"] {
        let mut refused = guarded.send(Request::post(&call("a", name))).await;
        assert_eq!((refused.status, refused.header("content-type")), (200, Some("application/json")));
        assert_eq!(refused.json().await, not_found("a"), "{name}");
        let events = Request::post(&call(1, name)).instead("Accept", "text/event-stream");
        let mut refused = guarded.send(events).await;
        assert_eq!((refused.status, refused.text().await.as_str()), (400, ""));
    }
    assert!(guarded.server.seen().is_empty());
}

#[tokio::test]
async fn calls_reach_the_server_under_the_names_that_it_knows() {
    let guarded = Guarded::new(steps(), with_tools).await;
    for (shown, original) in [("weigh", "weigh_hive"), ("feed", "feed")] {
        let answer = guarded.send(Request::post(&call(7, shown))).await.json().await;
        assert_eq!(answer["result"]["called"], original);
        let mut answer = guarded.send(modern(7, "tools/call", json!({"name": shown, "arguments": {}}))).await;
        assert_eq!(answer.json().await["result"]["called"], original);
        let seen = guarded.server.seen();
        let last = seen.iter().rfind(|seen| seen.json()["method"] == "tools/call").unwrap();
        assert_eq!((last.header("mcp-name"), last.header("mcp-method")), (Some(original), Some("tools/call")));
    }
}

#[tokio::test]
async fn a_header_that_disagrees_is_refused_before_it_is_rewritten() {
    let guarded = Guarded::new(steps(), with_tools).await;
    let params = json!({"name": "weigh", "arguments": {}});
    for told in ["weigh_hive", "feed", "=?base64?!?="] {
        let mut refused = guarded.send(modern(1, "tools/call", params.clone()).instead("Mcp-Name", told)).await;
        assert_eq!((refused.status, refused.json().await["error"]["code"].clone()), (400, json!(-32020)), "{told}");
    }
    assert!(guarded.server.seen().iter().all(|seen| seen.json()["method"] != "tools/call"));
}

#[tokio::test]
async fn no_form_of_a_request_hides_a_call() {
    let guarded = Guarded::new(steps(), with_tools).await;
    let hidden = call(1, "secret").to_string();
    let escaped = hidden.replace("secret", r"\u0073ecret").replace("tools/call", r"tools\/c\u0061ll");
    for (verb, path, kind) in [
        ("POST", "/mcp", "application/json"),
        ("POST", "/mcp", "text/plain"),
        ("PUT", "/mcp", "application/json"),
        ("POST", "/other", "application/json"),
        ("POST", "/x/sse", "application/json"),
        ("GET", "/mcp", "application/json"),
    ] {
        for body in [&hidden, &escaped] {
            let post = Request::new(verb, path).header("Content-Type", kind).body(body.clone());
            let mut refused = guarded.send(post).await;
            assert_eq!(refused.json().await, not_found(1), "{verb} {path} {kind}");
        }
    }
    // A notification asks for no answer, and must not be made either.
    let silent = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "secret"}});
    assert!(guarded.send(Request::post(&silent)).await.text().await.contains("-32602"));
    let batch = json!([call(1, "feed"), call(2, "secret")]);
    assert_eq!(guarded.send(Request::post(&batch)).await.json().await, not_found(2));
    assert!(guarded.server.seen().is_empty());
}

#[tokio::test]
async fn trap_42_no_way_to_write_a_call_hides_it() {
    let rules = rules(&["weigh"], &[]);
    let steps = vec![Step::ToolLists(rules.clone()), Step::ToolCalls(rules), Step::Parse];
    let guarded = Guarded::new(steps, with_tools).await;
    for (trick, text) in WRITTEN {
        let mut refused = guarded.send(raw(text)).await;
        let told = refused.text().await;
        assert!(!has_burnt(&guarded.server.seen()), "{trick}: {} {told}", refused.status);
        assert!(refused.status >= 400 || told.contains("-32602"), "{trick}: {} {told}", refused.status);
    }
}

#[tokio::test]
async fn the_calls_of_a_batch_are_renamed_too() {
    let guarded = Guarded::new(steps(), with_tools).await;
    guarded.send(Request::post(&json!([call(1, "weigh"), request(2, "ping", &json!({}))]))).await;
    let sent: Vec<_> = guarded.server.seen().iter().map(crate::transparent::server::Seen::json).collect();
    let of = |method: &str| sent.iter().find(|sent| sent["method"] == method).unwrap();
    assert_eq!((&of("tools/call")["params"]["name"], sent.len()), (&json!("weigh_hive"), 2));
    of("ping");
}

#[tokio::test]
async fn a_call_of_nothing_is_refused() {
    let guarded = Guarded::new(steps(), with_tools).await;
    for params in [json!({}), json!({"name": ""}), json!({"name": 7}), json!({"arguments": {}})] {
        let mut refused = guarded.send(Request::post(&request(1, "tools/call", &params))).await;
        assert_eq!((refused.status, refused.text().await.as_str()), (400, ""), "{params}");
    }
    assert!(guarded.server.seen().is_empty());
}
