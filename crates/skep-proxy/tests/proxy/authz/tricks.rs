//! Every way to say something so that the one who decides and the one who does it might hear different things.

use serde_json::{Value, json};
use skep_proxy::middleware::{Authorizer, CedarSettings, Chain, Middleware};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy};

use super::caller::Caller;
use super::way::ways;
use super::{authorizer, guarded, hive, legacy, steps};
use crate::http::{Request, call, modern, request, with_capabilities};
use crate::node::Node;
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

pub(crate) fn raw(text: &str) -> Request {
    Request::post(&Value::Null).plain().body(text.to_owned())
}

fn burn() -> Value {
    call(7, "burn")
}

/// Ways to write it, by the name of the trick.
pub(crate) const WRITTEN: [(&str, &str); 14] = [
    (
        "with the name twice",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh","name":"burn"}}"#,
    ),
    (
        "with the name twice, written in two ways",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh","n\u0061me":"burn"}}"#,
    ),
    (
        "with the name twice, in capitals",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh","Name":"burn"}}"#,
    ),
    (
        "with the parameters twice",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh"},"params":{"name":"burn"}}"#,
    ),
    (
        "with the parameters twice, with a long s",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh"},"param\u017f":{"name":"burn"}}"#,
    ),
    (
        "with the method twice, in capitals",
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","METHOD":"tools/call","params":{"name":"burn"}}"#,
    ),
    (
        "with the method in other words",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools\u002fcall","params":{"name":"\u0062urn"}}"#,
    ),
    (
        "with a mark before it",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"burn\"}}",
    ),
    (
        "with a space before it that is none",
        "\u{a0}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"burn\"}}",
    ),
    (
        "behind another message",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"burn\"}}",
    ),
    (
        "with a zero behind the name",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh\u0000burn"}}"#,
    ),
    ("with a result", r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"tools/call","params":{"name":"burn"}}"#),
    ("with an id of null", r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"burn"}}"#),
    ("within a batch within a batch", r#"[[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"burn"}}]]"#),
];

/// What is tried, by the name of the trick.
fn tricks() -> Vec<(&'static str, Request)> {
    let burn_text = burn().to_string();
    let mut quiet = burn();
    quiet.as_object_mut().unwrap().remove("id");
    let mut tricks = vec![
        ("as it is", Request::post(&burn())),
        ("as a notification", Request::post(&quiet)),
        ("in a batch", Request::post(&json!([burn()]))),
        ("in a batch behind what is allowed", Request::post(&json!([call(1, "weigh"), burn()]))),
        ("in a batch of 2025-03-26", legacy("2025-03-26", &json!([call(1, "weigh"), burn()]))),
        ("under a header that names another tool", Request::post(&burn()).header("Mcp-Name", "weigh")),
        ("under a header that names another method", Request::post(&burn()).header("Mcp-Method", "ping")),
        (
            "modern, with the name of another tool",
            modern(7, "tools/call", json!({"name": "burn"})).instead("Mcp-Name", "weigh"),
        ),
        ("modern, then legacy", legacy("2025-11-25", &modern_body("burn"))),
        ("legacy, with a modern header", Request::post(&burn()).header("MCP-Protocol-Version", "2026-07-28")),
        ("in somebody's session", Request::post(&burn()).in_session("made-up")),
        ("as text", Request::post(&burn()).instead("Content-Type", "text/plain")),
        ("as nearly JSON", Request::post(&burn()).instead("Content-Type", "application/jsonx")),
        ("as brotli", Request::post(&burn()).header("Content-Encoding", "br")),
        ("as gzip within nothing", Request::post(&burn()).header("Content-Encoding", "identity, gzip")),
        ("under two types", Request::post(&burn()).header("Content-Type", "application/json; charset=utf-7")),
        ("as a form", Request::post(&burn()).instead("Content-Type", "application/x-www-form-urlencoded")),
        ("without a type", Request::new("POST", "/mcp").body(burn_text.clone())),
        ("by PUT", Request::new("PUT", "/mcp").header("Content-Type", "application/json").body(burn_text.clone())),
        ("by PATCH", Request::new("PATCH", "/mcp").header("Content-Type", "application/json").body(burn_text.clone())),
        (
            "by DELETE",
            Request::new("DELETE", "/mcp").header("Content-Type", "application/json").body(burn_text.clone()),
        ),
        ("by GET", Request::new("GET", "/mcp").header("Content-Type", "application/json").body(burn_text.clone())),
        (
            "at the address of a stream",
            Request::new("POST", "/x/sse").header("Content-Type", "application/json").body(burn_text.clone()),
        ),
        (
            "at another address",
            Request::new("POST", "/elsewhere").header("Content-Type", "application/json").body(burn_text),
        ),
        ("in a task", Request::post(&request(7, "tasks/result", &json!({"taskId": "1", "name": "burn"})))),
        ("as a task", Request::post(&request(7, "tools/call", &json!({"name": "burn", "task": {"ttl": 1}})))),
        (
            "in an answer to a task, modern",
            modern(7, "tasks/update", json!({"taskId": "1", "name": "burn"})).instead("Mcp-Name", "1"),
        ),
        ("as an answer", Request::post(&request(7, "tools/call", &retry("burn", "made-up")))),
        ("as an answer, modern", modern(7, "tools/call", retry("burn", "made-up"))),
        ("as a notification, modern", quietly("burn")),
        ("as a notification in a batch", Request::post(&json!([call(1, "weigh"), quiet]))),
        (
            "in a batch, modern",
            Request::post(&json!([modern_body("weigh"), modern_body("burn")]))
                .header("MCP-Protocol-Version", "2026-07-28"),
        ),
        ("by HTTP+SSE, in somebody's stream", Request::post(&burn()).at("/messages?sessionId=0")),
        ("by HTTP+SSE, where streamable HTTP is", Request::post(&burn()).at("/mcp?sessionId=made-up")),
        (
            "in a resource",
            Request::post(&request(7, "resources/read", &json!({"uri": "hive://1", "name": "burn", "Uri": "burn"}))),
        ),
    ];
    tricks.extend(WRITTEN.map(|(name, text)| (name, raw(text))));
    tricks
}

/// What a client says again when the server wanted to know something.
fn retry(tool: &str, state: &str) -> Value {
    json!({"name": tool, "inputResponses": {"sure": {"action": "accept", "content": {}}}, "requestState": state})
}

/// A call that stands alone and wants no answer.
fn quietly(tool: &str) -> Request {
    let mut message = modern_body(tool);
    message.as_object_mut().unwrap().remove("id");
    let post = Request::post(&message).header("MCP-Protocol-Version", "2026-07-28");
    post.header("Mcp-Method", "tools/call").header("Mcp-Name", tool)
}

fn modern_body(tool: &str) -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    request(7, "tools/call", &json!({"name": tool, "_meta": meta}))
}

#[tokio::test]
async fn no_trick_reaches_a_tool_that_is_denied() {
    for (way, revisions) in ways(|| steps(authorizer(&["keepers"]))).await {
        // As somebody who just comes, and within what everybody has there who has begun to talk.
        let mut caller = Caller::begin(&way, revisions[0], ("keepers", "")).await;
        for ((trick, request), is_own) in tricks().into_iter().flat_map(|trick| [(trick.clone(), false), (trick, true)])
        {
            let request = if is_own { caller.own(request) } else { request };
            let mut answer = request.send(&way.address).await;
            let text = answer.text().await;
            let row = format!("{trick} ({}, {is_own}): {} {text}", way.name, answer.status);
            assert!(!way.has_burnt() && (400..500).contains(&answer.status), "{row}");
        }
        caller.settle().await;
        assert!(!way.has_burnt(), "{}", way.name);
    }
}

/// Ways to ask for a list without wanting an answer, by the name of the trick.
fn quiet_lists() -> Vec<(&'static str, Request)> {
    let quiet = json!({"jsonrpc": "2.0", "method": "tools/list"});
    let meta = modern_body("weigh")["params"]["_meta"].clone();
    let alone = json!({"jsonrpc": "2.0", "method": "tools/list", "params": {"_meta": meta}});
    let modern = Request::post(&alone).header("MCP-Protocol-Version", "2026-07-28");
    vec![
        ("as a notification", Request::post(&quiet)),
        ("as a notification of 2025-11-25", legacy("2025-11-25", &quiet)),
        ("as a notification, modern", modern.clone()),
        ("as a notification, modern, with its headers", modern.header("Mcp-Method", "tools/list")),
        ("in a batch", Request::post(&json!([quiet]))),
        ("in a batch of 2025-03-26", legacy("2025-03-26", &json!([quiet]))),
        ("in a batch behind what is allowed", Request::post(&json!([call(1, "weigh"), quiet]))),
        ("with an id of null", raw(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#)),
    ]
}

/// What a server says that answers to whatever it is asked.
const LISTED: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":null,"result":{"tools":[{"name":"weigh"},{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","result":{"tools":[{"name":"weigh"},{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":0,"result":{"tools":[{"name":"weigh"},{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":"","result":{"tools":[{"name":"weigh"},{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"items":[{"name":"burn"}]}}"#,
    r#"{"jsonrpc":"2.0","id":null,"Result":{"Tools":[{"name":"burn"}]}}"#,
];

#[tokio::test]
async fn a_list_that_is_asked_for_without_an_id_shows_nothing_that_is_denied() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let forms =
        [("application/json", "@"), ("application/json", "[@]"), ("text/event-stream", "data: @\n\n"), ("", "@")];
    for (listed, (kind, form)) in LISTED.iter().flat_map(|listed| forms.map(|form| (listed, form))) {
        let body = form.replace('@', listed);
        server.replace(move |seen| {
            let lists = String::from_utf8_lossy(&seen.body).contains("tools/list");
            let headers: Vec<_> =
                Some(("content-type", kind)).filter(|(_, kind)| !kind.is_empty()).into_iter().collect();
            if lists { reply(200, &headers, body.clone()) } else { hive(seen) }
        });
        for (trick, request) in quiet_lists() {
            let mut answer = before.send(request).await;
            let text = answer.text().await;
            assert!(!text.contains("burn"), "{trick}, {listed} as {form:?}: {} {text}", answer.status);
            let has_arrived = !server.seen().is_empty();
            assert!(has_arrived || trick != "as a notification", "it has to reach the server to be a trick");
        }
    }
}

/// Servers that do not care about capitals take `Hive` for `hive`.
#[tokio::test]
async fn an_argument_in_other_capitals_does_not_evade_a_forbid() {
    let forbid = r#"forbid(principal, action, resource == Tool::"weigh")
        when { context has arg_hive && context.arg_hive != "north" };"#;
    let policies = vec!["permit(principal, action, resource);".to_owned(), forbid.to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer)).await;
    for (tool, arguments, status) in [
        ("weigh", json!({}), 200),
        ("weigh", json!({"hive": "north"}), 200),
        ("weigh", json!({"hive": "south"}), 403),
        ("weigh", json!({"Hive": "south"}), 403),
        ("weigh", json!({"HIVE": "north"}), 403),
        // Other tools may have an argument of that name.
        ("look", json!({"Hive": "south"}), 200),
    ] {
        let called = request(7, "tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(before.send(Request::post(&called).plain()).await.status, status, "{tool} {arguments}");
        assert_eq!(server.seen().is_empty(), status == 403, "{tool} {arguments}");
    }
}

/// A server that wants to know something before it does anything.
fn asking(seen: &Seen) -> Reply {
    let message = seen.json();
    if message["method"] != "tools/call" || message["params"].get("inputResponses").is_some() {
        return hive(seen);
    }
    let question = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?"}});
    let result =
        json!({"resultType": "input_required", "inputRequests": {"sure": question}, "requestState": "of the server"});
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    reply(200, &[("content-type", "application/json")], body.to_string())
}

#[tokio::test]
async fn an_answer_about_one_tool_does_not_reach_another() {
    let server = Server::start(asking).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let capable = |id: u64, params: Value| with_capabilities(id, "tools/call", params, &json!({"elicitation": {}}));
    let asked = before.send(capable(1, json!({"name": "weigh"})).plain()).await.json().await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    server.seen();
    let burn = request(7, "tools/call", &retry("burn", &state));
    let curse = json!({"name": "curse", "inputResponses": {}, "requestState": state});
    let quiet = json!({"jsonrpc": "2.0", "method": "tools/call", "params": retry("burn", &state)});
    for (trick, request, id) in [
        ("under the other name", capable(7, retry("burn", &state)).plain(), r#""id":7,"#),
        ("as a prompt", modern(7, "prompts/get", curse).plain(), r#""id":7,"#),
        ("in a session", legacy("2025-11-25", &burn), r#""id":7,"#),
        ("in a batch", legacy("2025-03-26", &json!([burn])), r#""id":7,"#),
        ("without wanting an answer", legacy("2025-11-25", &quiet), ""),
        ("without wanting an answer, modern", quietly("burn").plain(), ""),
    ] {
        let mut refused = before.send(request).await;
        let told = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":403,"message":"Unauthorized"}}}}"#);
        assert_eq!((refused.status, refused.text().await), (403, told), "{trick}");
        assert!(server.seen().is_empty(), "{trick}");
    }
    assert_eq!(before.send(capable(8, retry("weigh", &state)).plain()).await.status, 200);
    assert_eq!(server.seen().last().unwrap().json()["params"]["requestState"], "of the server");
}

#[tokio::test]
async fn trap_25_only_json_is_judged_and_nothing_else_passes() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["keepers"]))).await;
    let weigh = || Request::post(&call(7, "weigh")).plain();
    for kind in ["Application/JSON; charset=x", "application/json;charset=utf-7", "application/json"] {
        assert_eq!(before.send(weigh().instead("Content-Type", kind)).await.status, 200);
        assert_eq!(server.seen()[0].header("content-type"), Some("application/json"), "{kind}");
    }
    for kind in ["text/plain", "application/jsonx", ""] {
        let mut answer = before.send(weigh().instead("Content-Type", kind)).await;
        assert_eq!(
            (answer.status, answer.text().await.as_str()),
            (400, "Invalid or malformed MCP request\n"),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn an_answer_to_the_servers_own_question_passes() {
    let server = Server::start(hive).await;
    let before = guarded(&server, Dialect::Streamable, steps(authorizer(&["guests"]))).await;
    let answer = json!({"jsonrpc": "2.0", "id": "s-1", "result": {"roots": []}});
    assert!(before.send(Request::post(&answer)).await.status < 300);
    assert_eq!(server.seen().len(), 1);
}

/// A call that is one of `weigh` for all who read it as UTF-8, and one of `burn` for those who read it as UTF-7.
const TWO_FACED: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"weigh","title":"a+ACIALAAiAG4AYQBtAGUAIgA6ACI-burn"}}"#;

#[tokio::test]
async fn trap_25_a_server_that_goes_by_charsets_reads_what_was_judged() {
    let test = "trap_25_a_server_that_goes_by_charsets_reads_what_was_judged";
    let Some(server) = Node::start(test, "express@5.3.0", include_str!("express.mjs")) else { return };
    let utf7 = || raw(TWO_FACED).instead("Content-Type", "application/json; charset=utf-7");
    // That it does go by them is what makes the trick one.
    assert_eq!(utf7().send(&server.address).await.json().await["result"]["called"], "burn");
    for steps in [steps(authorizer(&["keepers"])), vec![]] {
        let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
        let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
        let proxy = Proxy::transparent(transparent).with_middleware(Middleware::new(Chain::new(steps)));
        let before = Before::unready(proxy).await;
        before.await_ready().await;
        assert_eq!(before.send(utf7()).await.json().await["result"]["called"], "weigh");
    }
}
