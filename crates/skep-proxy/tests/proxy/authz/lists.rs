//! What a list shows is what its reader may use.

use serde_json::{Value, json};
use skep_proxy::middleware::{Step, ToolRules};
use skep_proxy::transparent::Dialect;

use super::{authorizer, guarded, hive, legacy, result, steps};
use crate::http::{Request, call, modern, request};
use crate::transparent::server::{Server, reply};

fn list(method: &str) -> Request {
    Request::post(&request(7, method, &json!({})))
}

#[tokio::test]
async fn trap_46_lists_show_what_may_be_used_and_everything_around_it() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let listed = async |asked: Request| before.send(asked.plain()).await.text().await;
    let tools = listed(list("tools/list")).await;
    assert_eq!(
        tools,
        r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"weigh","later":[1.5]},{"name":"look","annotations":{"readOnlyHint":true}}],"nextCursor":"2","_meta":{"x":1}}}"#
    );
    // What the newer era has to be told comes after it.
    let claims = r#","resultType":"complete","ttlMs":0,"cacheScope":"private"}}"#;
    assert_eq!(listed(modern(7, "tools/list", json!({}))).await, tools.replace("}}}", &format!("}}{claims}")));
    let value = |text: String| serde_json::from_str::<Value>(&text).unwrap()["result"].clone();
    assert_eq!(value(listed(list("prompts/list")).await), json!({"prompts": [{"name": "greet"}]}));
    assert_eq!(value(listed(list("resources/list")).await), json!({"resources": [{"uri": "hive://1"}]}));
}

#[tokio::test]
async fn trap_45_policies_and_a_filter_deliver_a_complete_list() {
    let rules = ToolRules::new(vec!["weigh".to_owned(), "burn".to_owned()], [].into()).unwrap();
    for kind in ["application/json", "text/event-stream"] {
        let server = Server::start(move |seen| {
            let answer = hive(seen);
            if kind == "application/json" || seen.json()["method"] != "tools/list" {
                return answer;
            }
            let list = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result(&seen.json())});
            reply(200, &[("content-type", kind)], format!("event: message\ndata: {list}\n\n"))
        })
        .await;
        let mut steps = steps(authorizer(&["keepers"]));
        steps.insert(1, Step::ToolLists(rules.clone()));
        let before = guarded(&server, Dialect::Streamable, steps).await;
        let text = before.send(list("tools/list")).await.text().await;
        let whole = text.trim().trim_start_matches("event: message\ndata: ");
        let expected = json!({"jsonrpc": "2.0", "id": 7,
            "result": {"tools": [{"name": "weigh", "later": [1.5]}], "nextCursor": "2", "_meta": {"x": 1}}});
        assert_eq!(serde_json::from_str::<Value>(whole).unwrap(), expected, "{kind}: {text}");
    }
}

#[tokio::test]
async fn whoever_may_nothing_sees_empty_lists() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&[]))).await;
    for (method, member) in [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources")] {
        let answer = before.send(list(method).plain()).await.json().await;
        assert_eq!(answer["result"][member], json!([]), "{method}");
    }
}

#[tokio::test]
async fn hints_of_a_list_count_for_the_calls_after_it() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let look = || Request::post(&call(7, "look")).plain();
    assert_eq!(before.send(look()).await.status, 403, "nobody has heard of its hints");
    assert_eq!(before.send(list("tools/list").plain()).await.status, 200);
    assert_eq!(before.send(look()).await.status, 200);
    // Whatever a caller says about the tool is not believed.
    let mut spoofed = call(7, "burn");
    spoofed["params"]["annotations"] = json!({"readOnlyHint": true});
    assert_eq!(before.send(Request::post(&spoofed).plain()).await.status, 403);
}

#[tokio::test]
async fn the_lists_of_a_batch_are_filtered_too() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let batch = json!([request(1, "tools/list", &json!({})), request(2, "prompts/list", &json!({})), call(3, "weigh")]);
    let text = before.send(Request::post(&batch).plain()).await.text().await;
    assert!(text.contains("weigh") && text.contains("greet"), "{text}");
    assert!(!text.contains("burn") && !text.contains("curse"), "{text}");
    let unheard = before.send(legacy("2025-06-18", &batch)).await;
    assert_eq!(unheard.status, 400, "that revision has no batches");
}

/// Ways to write a list so that a filter may overlook it, and what status the server gives it.
const DISGUISES: [(&str, u16, &str, &str); 11] = [
    ("a mark before it", 200, "application/json", "\u{feff}@"),
    ("no type", 200, "", "@"),
    ("another type", 200, "text/plain", "@"),
    ("a type in capitals", 200, "Application/JSON;x=y", "@"),
    ("another success", 201, "application/json", "@"),
    ("a batch", 200, "application/json", "[@]"),
    ("an event", 200, "text/event-stream", "data: @\n\n"),
    ("an event without its end", 200, "text/event-stream", "event: message\ndata: @"),
    ("an event with other ends of lines", 200, "text/event-stream", "data: @\r\n\r\n"),
    ("an event of no type", 200, "text/plain", "event: message\ndata: @\n\n"),
    ("an event behind others", 200, "text/event-stream", ": hello\n\nid: 1\ndata:\n\ndata: @\n\n"),
];

/// Things that are no clean answers, and still show a list to somebody who does not mind.
const UNCLEAN: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":7,"method":"x","result":{"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"1.0","id":7,"result":{"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":{},"result":{"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""},"result":{"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"weigh"}]}}{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"weigh"}],"tools":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"weigh","name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"tools":{"burn":{"name":"burn"}}}}"#,
];

#[tokio::test]
async fn trap_42_no_disguise_shows_what_is_hidden() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let clean = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"weigh"},{"name":"burn"}]}}"#;
    let quiet = Request::post(&json!({"jsonrpc": "2.0", "method": "tools/list"}));
    for ((disguise, status, kind, form), id) in
        DISGUISES.into_iter().flat_map(|disguise| [r#""id":7,"#, r#""id":null,"#, ""].map(|id| (disguise, id)))
    {
        let body = form.replace('@', &clean.replace(r#""id":7,"#, id));
        server.replace(move |_| match kind {
            "" => reply(status, &[], body.clone()),
            kind => reply(status, &[("content-type", kind)], body.clone()),
        });
        let text = before.send(list("tools/list")).await.text().await;
        assert!(!text.contains("burn") && (text.contains("weigh") || !id.contains('7')), "{disguise}, {id}: {text}");
        // Whoever wants no answer may get one all the same.
        let text = before.send(quiet.clone()).await.text().await;
        assert!(!text.contains("burn"), "{disguise}, {id} to a notification: {text}");
    }
}

#[tokio::test]
async fn trap_43_what_is_no_clean_answer_is_told_in_general_words() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let told = r#""error":{"code":-32603,"message":"internal error"}"#;
    for unclean in UNCLEAN {
        for (kind, form) in [("application/json", "@"), ("text/event-stream", "event: message\ndata: @\n\n")] {
            let body = form.replace('@', unclean);
            server.replace(move |_| reply(200, &[("content-type", kind)], body.clone()));
            let mut answer = before.send(list("tools/list")).await;
            let text = answer.text().await;
            assert!(text.contains(told) && !text.contains("burn"), "{unclean} as {kind}: {text}");
            assert_eq!(answer.status, if kind == "application/json" { 500 } else { 200 }, "{unclean} as {kind}");
        }
    }
}

#[tokio::test]
async fn trap_44_a_failure_stays_a_failure() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let json = [("content-type", "application/json")];
    server.replace(move |_| reply(500, &json, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"own"}}"#));
    let mut answer = before.send(list("tools/list")).await;
    let text = answer.text().await;
    assert!(answer.status == 500 && text.contains("own"), "{} {text}", answer.status);
}

#[tokio::test]
async fn a_filtered_list_is_for_its_reader_alone() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let body = r#"{"jsonrpc":"2.0","id":7,"result":{"cacheScope":"public","ttlMs":5,"resultType":"complete","tools":[{"name":"burn"}]}}"#;
    server.replace(move |seen| match seen.json()["method"].as_str() {
        Some("tools/list") => reply(200, &[("content-type", "application/json")], body),
        _ => hive(seen),
    });
    let text = before.send(modern(7, "tools/list", json!({})).plain()).await.text().await;
    let around = r#""cacheScope":"private","ttlMs":5,"resultType":"complete""#;
    assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{{around},"tools":[]}}}}"#));
}
