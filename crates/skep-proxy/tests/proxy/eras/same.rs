//! Clients whose requests stand alone, before a server of the same era: what they are promised whatever it says.

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use super::streams::sessions;
use super::{JSON, stands_alone, words};
use crate::http::{Request, initialize, modern, request, with_capabilities};
use crate::transparent::server::{Before, Reply, Seen, Server, reply, with_sessions};

/// A server without sessions that does with calls what a function says.
fn calls(call: impl Fn(&Seen, &Value) -> Reply + Send + Sync + 'static) -> impl Fn(&Seen) -> Reply + Send + Sync {
    move |seen| {
        let message = seen.json();
        if message["method"] == "tools/call" { call(seen, &message) } else { stands_alone(seen) }
    }
}

fn answer(message: &Value, result: &Value) -> Reply {
    reply(200, &JSON, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// A server that asks once, and says what it got back.
fn asking(_: &Seen, message: &Value) -> Reply {
    let params = &message["params"];
    if params["inputResponses"].is_null() {
        let question = json!({"method": "roots/list"});
        // With a letter that could be written in another way.
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": {
            "resultType": "input_required", "inputRequests": {"q": question}, "requestState": params["name"],
        }});
        return reply(200, &JSON, body.to_string().replace("north", "n\\u006frth"));
    }
    answer(message, &json!({"resultType": "complete", "content": [], "state": params["requestState"]}))
}

fn call(id: u32, params: &Value) -> Request {
    with_capabilities(id, "tools/call", params.clone(), &json!({"roots": {}}))
}

async fn before(server: &Server) -> Before {
    let before = Before::local(Dialect::Streamable, &server.address).await;
    // It is known from now on what the server speaks.
    assert_eq!(before.send(modern(0, "server/discover", json!({}))).await.status, 200);
    server.seen();
    before
}

#[tokio::test]
async fn rule_10_what_has_to_be_repeated_is_for_one_client_and_one_call() {
    let server = Server::start(calls(asking)).await;
    let before = before(&server).await;
    let params = json!({"name": "north", "arguments": {"hive": 3}});
    let asked = before.send(call(1, &params).header("Authorization", "Bearer a")).await.json().await;
    assert_eq!(asked["result"]["inputRequests"], json!({"q": {"method": "roots/list"}}));
    let state = asked["result"]["requestState"].clone();
    assert!(state.as_str().unwrap().starts_with("sk1.") && !state.as_str().unwrap().contains("north"));
    server.seen();
    let again = |change: &dyn Fn(&mut Value)| {
        let mut params = params.clone();
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({"q": {"roots": []}});
        change(&mut params);
        call(2, &params)
    };
    let flipped = state.as_str().unwrap().replace("sk1.", "sk1.A");
    for (request, why) in [
        (again(&|_| {}).header("Authorization", "Bearer b"), "another client"),
        (again(&|_| {}), "nobody in particular"),
        (
            again(&|params| params["arguments"]["hive"] = json!(4)).header("Authorization", "Bearer a"),
            "other arguments",
        ),
        (again(&|params| params["name"] = json!("south")).header("Authorization", "Bearer a"), "another tool"),
        (again(&|params| params["requestState"] = json!(flipped)).header("Authorization", "Bearer a"), "changed"),
        (again(&|params| params["requestState"] = json!("north")).header("Authorization", "Bearer a"), "not ours"),
    ] {
        let mut refused = before.send(request).await;
        let told = refused.json().await;
        assert_eq!((refused.status, &told["error"]["code"]), (200, &json!(-32602)), "{why}: {told}");
    }
    assert_eq!(server.seen().len(), 0, "the server sees nothing of it");
    let done = before.send(again(&|_| {}).header("Authorization", "Bearer a")).await.json().await;
    assert_eq!(done["result"]["state"], "north");
    let seen = server.seen();
    let body = String::from_utf8(seen[0].body.to_vec()).unwrap();
    assert!(body.contains(r#""requestState":"n\u006frth""#), "its own bytes: {body}");
}

#[tokio::test]
async fn rule_11_answers_and_states_stay_with_their_calls() {
    let server = Server::start(calls(asking)).await;
    let before = before(&server).await;
    let ask = async |name: &str| {
        let asked = before.send(call(1, &json!({"name": name}))).await.json().await;
        asked["result"]["requestState"].clone()
    };
    let (a, b) = (ask("a").await, ask("b").await);
    let again = async |name: &str, state: &Value| {
        let params = json!({"name": name, "requestState": state, "inputResponses": {"q": {"roots": []}}});
        before.send(call(2, &params)).await.json().await
    };
    assert_eq!(again("a", &b).await["error"]["code"], -32602);
    let (first, second) = tokio::join!(again("b", &b), again("a", &a));
    assert_eq!((&first["result"]["state"], &second["result"]["state"]), (&json!("b"), &json!("a")));
}

#[tokio::test]
async fn rule_12_a_client_is_not_asked_what_it_did_not_offer() {
    let server = Server::start(calls(asking)).await;
    let before = before(&server).await;
    let told = before.send(modern(1, "tools/call", json!({"name": "a"}))).await.json().await;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(told["error"]["message"].as_str().unwrap().contains("roots/list"), "{told}");
}

#[tokio::test]
async fn results_say_what_they_have_to_and_keep_every_other_byte() {
    let odd = "{ \"jsonrpc\":\"2.0\",\"id\" : 1,\"result\":{\"content\": [ ] , \"x\":1.50,\"\\u0061\":\"\u{a0}\"}}";
    let whole = odd.replace(" [ ] ,", " [ ] ,\"resultType\":\"complete\",");
    for (text, expected) in [
        (odd.to_owned(), odd.replace("\"\u{a0}\"}}", "\"\u{a0}\",\"resultType\":\"complete\"}}")),
        (whole.clone(), whole),
    ] {
        let server = Server::start(calls(move |_, _| reply(200, &JSON, text.clone()))).await;
        let before = before(&server).await;
        let mut answer = before.send(modern(1, "tools/call", json!({"name": "a"}))).await;
        assert_eq!(answer.header("content-length"), Some(expected.len().to_string().as_str()));
        assert_eq!(answer.text().await, expected);
    }
    let server = Server::start(stands_alone).await;
    let before = before(&server).await;
    let listed = before.send(modern(1, "tools/list", json!({}))).await.json().await["result"].clone();
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(0), &json!("private")));
    let found = before.send(modern(1, "server/discover", json!({}))).await.json().await["result"].clone();
    assert_eq!(found["cacheScope"], "public", "what is said already stays");
}

#[tokio::test]
async fn rule_1_headers_repeat_the_arguments_whatever_the_server_checks() {
    let server = Server::start(|seen| match seen.json()["method"].as_str() {
        // It does not check anything.
        Some("tools/call") => answer(&seen.json(), &json!({"resultType": "complete", "content": []})),
        _ => stands_alone(seen),
    })
    .await;
    let before = before(&server).await;
    before.send(modern(1, "tools/list", json!({}))).await;
    server.seen();
    let call = || modern(2, "tools/call", json!({"name": "weigh", "arguments": {"yard": "north"}}));
    for (request, why) in [
        (call(), "missing"),
        (call().header("Mcp-Param-Yard", "south"), "another one"),
        (call().header("Mcp-Param-Yard", "north").header("Mcp-Param-Yard", "north"), "twice"),
        (call().header("Mcp-Param-Yard", "=?base64?!?="), "unreadable"),
    ] {
        let mut refused = before.send(request).await;
        assert_eq!((refused.status, refused.json().await["error"]["code"].clone()), (400, json!(-32020)), "{why}");
    }
    assert_eq!(server.seen().len(), 0);
    assert_eq!(before.send(call().header("Mcp-Param-Yard", "north")).await.status, 200);
    assert_eq!(server.seen()[0].header("mcp-param-yard"), Some("north"));
}

#[tokio::test]
async fn tools_that_nobody_could_call_are_not_offered() {
    let server = Server::start(|seen| match seen.json()["method"].as_str() {
        Some("tools/list") => {
            let tool = |name: &str, kind: &str| {
                let schema = json!({"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": "A"}}});
                json!({"name": name, "inputSchema": schema})
            };
            answer(&seen.json(), &json!({"tools": [tool("bad", "number"), tool("good", "integer")], "nextCursor": "n"}))
        }
        _ => stands_alone(seen),
    })
    .await;
    let before = before(&server).await;
    let listed = before.send(modern(1, "tools/list", json!({}))).await.json().await["result"].clone();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!((names, &listed["nextCursor"]), (vec![&json!("good")], &json!("n")));
}

#[tokio::test]
async fn several_messages_in_one_body_become_events() {
    let server = Server::start(calls(|_, message| {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
        let done = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
        reply(200, &JSON, format!("{note}\n\n{done}"))
    }))
    .await;
    let before = before(&server).await;
    let mut stream = before.send(modern(7, "tools/call", json!({"name": "a"}))).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/progress");
    let done = stream.message().await.unwrap();
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn events_keep_everything_but_what_is_said_anew() {
    let kept =
        ": hello\nid: 7\nretry: 50\nevent: message\ndata: {\"jsonrpc\":\"2.0\", \"method\":\"notifications/x\"}\n\n";
    let text = format!("{kept}id: 8\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{{\"content\":[]}}}}\n\n");
    let server =
        Server::start(calls(move |_, _| reply(200, &[("content-type", "text/event-stream")], text.clone()))).await;
    let before = before(&server).await;
    let told = before.send(modern(1, "tools/call", json!({"name": "a"}))).await.text().await;
    let rest = told.strip_prefix(kept).unwrap_or_else(|| panic!("{told}"));
    assert_eq!(
        rest,
        "id: 8\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{\"content\":[],\"resultType\":\"complete\"}}\n\n"
    );
}

#[tokio::test]
async fn rule_21_whom_a_change_is_for_is_not_the_servers_to_say() {
    let server = Server::start(|seen| {
        let message = seen.json();
        if message["method"] != "subscriptions/listen" {
            return stands_alone(seen);
        }
        let meta = json!({"io.modelcontextprotocol/subscriptionId": "30"});
        let note =
            |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"notifications": {}, "_meta": meta}});
        let done = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", "_meta": meta}});
        let notes = [note("notifications/subscriptions/acknowledged"), note("notifications/tools/list_changed"), done];
        let lines: Vec<String> = notes.iter().map(|note| format!("{note}\n")).collect();
        reply(200, &JSON, lines.concat())
    })
    .await;
    let before = before(&server).await;
    let mut stream = before.send(modern(30, "subscriptions/listen", json!({"notifications": {}}))).await;
    for part in ["params", "params", "result"] {
        let message = stream.message().await.unwrap();
        assert_eq!(message[part]["_meta"]["io.modelcontextprotocol/subscriptionId"], 30, "{message}");
    }
}

#[tokio::test]
async fn a_call_is_made_again_when_the_server_has_become_one_of_sessions() {
    let server = Server::start(stands_alone).await;
    let before = before(&server).await;
    server.replace(with_sessions("a"));
    let mut answer = before.send(modern(1, "tools/call", json!({"name": "a"}))).await;
    assert_eq!((answer.status, answer.json().await["result"]["session"].clone()), (200, json!("a-0")));
    let seen = words(&server.seen());
    assert_eq!(seen[..3], ["tools/call", "server/discover", "initialize"], "{seen:?}");
    // And back: a server that refuses the handshake has not seen the call.
    server.replace(calls(|_, message| answer_now(message)));
    let again = before.send(modern(2, "tools/call", json!({"name": "a"}))).await.json().await;
    assert_eq!(again["result"]["now"], true, "{again}");
    let called = words(&server.seen()).into_iter().filter(|word| word == "tools/call").count();
    assert_eq!(called, 1);
}

fn answer_now(message: &Value) -> Reply {
    answer(message, &json!({"resultType": "complete", "content": [], "now": true}))
}

#[tokio::test]
async fn what_a_server_refuses_in_words_of_its_era_is_no_reason_to_ask_it_anything() {
    let server = Server::start(stands_alone).await;
    let before = before(&server).await;
    for _ in 0..3 {
        let unknown = before.send(modern(1, "hive/dance", json!({}))).await;
        assert_eq!(unknown.status, 404);
    }
    assert_eq!(words(&server.seen()), ["hive/dance", "hive/dance", "hive/dance"]);
}

#[tokio::test]
async fn rule_21_nobody_speaks_in_the_name_of_another() {
    let (key, spoofed) = ("io.modelcontextprotocol/", json!({"name": "spoofed"}));
    let call = {
        let spoofed = spoofed.clone();
        move |_: &Seen, message: &Value| {
            answer(
                message,
                &json!({"resultType": "complete", "content": [], "_meta": {format!("{key}serverInfo"): spoofed}}),
            )
        }
    };
    // A server of sessions is who its handshake says.
    let server = Server::start(sessions(call, |_| reply(405, &[], ""))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let params = json!({"name": "a", "_meta": {format!("{key}clientInfo"): spoofed}});
    let told = before.send(modern(1, "tools/call", params.clone())).await.json().await;
    assert_eq!(told["result"]["_meta"][format!("{key}serverInfo")], json!({"name": "s"}));
    for seen in server.seen().iter().filter(|seen| seen.json()["method"] != "server/discover") {
        assert!(!seen.json().to_string().contains("spoofed"), "{:?}", seen.body);
    }
    // And a client of sessions is us.
    let server = Server::start(calls(|_, message| answer_now(message))).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let opened = before.send(Request::post(&initialize("2025-11-25")).plain()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    server.seen();
    let mut params = params;
    params["_meta"][format!("{key}protocolVersion")] = json!("2025-11-25");
    let post = Request::post(&request(2, "tools/call", &params)).in_session(&session).plain();
    assert_eq!(before.send(post.header("MCP-Protocol-Version", "2025-11-25")).await.status, 200);
    let meta = server.seen()[0].json()["params"]["_meta"].clone();
    assert_eq!(
        (&meta[format!("{key}clientInfo")]["name"], &meta[format!("{key}protocolVersion")]),
        (&json!("skep"), &json!("2026-07-28"))
    );
}

#[tokio::test]
async fn the_versions_that_are_told_are_those_of_a_refusal() {
    let server = Server::start(stands_alone).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let discovered = before.send(modern(1, "server/discover", json!({}))).await.json().await;
    let mut params = json!({});
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999.0.0");
    let unknown = Request::post(&request(2, "server/discover", &params)).header("MCP-Protocol-Version", "v999.0.0");
    let refused = before.send(unknown).await.json().await;
    let supported = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(refused["error"]["data"], json!({"supported": supported, "requested": "v999.0.0"}));
    assert_eq!(discovered["result"]["supportedVersions"], supported);
}
