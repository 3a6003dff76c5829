//! Clients of one era before a server of the other, and what each of the two gets to see.

mod again;
mod changes;
mod chosen;
mod listening;
mod parked;
mod places;
mod rotated;
mod same;
mod streams;
mod unanswered;

use std::sync::Mutex;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;
use tokio::sync::mpsc;

use crate::http::{Request, call, initialize, modern, request};
use crate::transparent::server::{Before, Reply, Seen, Server, reply, with_sessions};
use crate::transparent::streams::stream;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A server whose requests stand alone, and which has one tool that wants an argument in a header.
pub(crate) fn stands_alone(seen: &Seen) -> Reply {
    let message = seen.json();
    let error = |status, code: i64| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}});
        reply(status, &JSON, body.to_string())
    };
    let result = |result: Value| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        reply(200, &JSON, body.to_string())
    };
    match (seen.method.as_str(), message["method"].as_str().unwrap_or_default()) {
        ("OPTIONS", _) => reply(204, &[], ""),
        ("POST", "server/discover") => result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {}},
            "ttlMs": 0, "cacheScope": "public",
        })),
        ("POST", "tools/list") => {
            let schema = json!({"type": "object", "properties": {"yard": {"type": "string", "x-mcp-header": "Yard"}}});
            result(json!({"resultType": "complete", "tools": [{"name": "weigh", "inputSchema": schema}]}))
        }
        ("POST", "tools/call") if seen.header("mcp-param-yard").is_none() => error(400, -32020),
        ("POST", "tools/call") => result(json!({"resultType": "complete", "content": [], "x": 1.0})),
        ("POST", _) => error(404, -32601),
        _ => reply(405, &[], ""),
    }
}

/// What a server got, a word each.
fn words(seen: &[Seen]) -> Vec<String> {
    let word = |seen: &Seen| seen.json()["method"].as_str().map_or(seen.method.clone(), str::to_owned);
    seen.iter().filter(|seen| seen.method != "OPTIONS").map(word).collect()
}

/// Waits until a server got this many requests more, and gives them.
async fn got(server: &Server, many: usize) -> Vec<Seen> {
    let mut all = Vec::new();
    let waiting = async {
        while all.len() < many {
            all.extend(server.seen().into_iter().filter(|seen| seen.method != "OPTIONS"));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::http::PATIENCE, waiting).await.unwrap();
    all
}

/// What a server gets until it gets this. Streams may be opened at any time.
async fn until(server: &Server, word: &str) -> Vec<String> {
    let mut said = Vec::new();
    while said.last().is_none_or(|last| last != word) {
        said.extend(words(&got(server, 1).await).into_iter().filter(|word| word != "GET"));
    }
    said
}

#[tokio::test]
async fn a_session_opened_for_a_request_ends_with_it() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    let mut answer = before.send(modern("x", "tools/list", json!({"y": 1})).in_session("stolen")).await;
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
    let answer = answer.json().await;
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!("x"), &json!("complete")));
    assert_eq!(answer["result"]["session"], "a-0", "it was served within a session of ours");
    let seen = got(&server, 5).await;
    let expected = ["server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"];
    assert_eq!(words(&seen), expected);
    for seen in &seen[1..] {
        assert_eq!((seen.header("mcp-method"), seen.header("mcp-name")), (None, None));
        assert_ne!(seen.header("mcp-session-id"), Some("stolen"));
    }
    assert_eq!(seen[3].json()["params"], json!({"y": 1}), "what is said about the client is said once");
    assert_eq!(seen[4].header("mcp-session-id"), Some("a-0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_leaves_is_called_off_before_its_session_ends() {
    let sessions = with_sessions("a");
    let open = Mutex::new(Vec::new());
    let server = Server::start(move |seen| {
        if seen.json()["method"] != "tools/call" {
            return sessions(seen);
        }
        let (sender, parts) = mpsc::unbounded_channel();
        open.lock().unwrap().push(sender);
        stream(&[("content-type", "text/event-stream")], parts)
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    before.send(modern(0, "tools/list", json!({}))).await;
    got(&server, 5).await;
    for _ in 0..20 {
        tokio::select! {
            answer = before.send(modern(1, "tools/call", json!({"name": "hang"}))) => panic!("{}", answer.status),
            said = until(&server, "tools/call") => assert_eq!(said.last().unwrap(), "tools/call"),
        }
        let said = until(&server, "DELETE").await;
        assert_eq!(said, ["notifications/cancelled", "DELETE"]);
    }
}

#[tokio::test]
async fn a_session_that_is_opened_in_vain_ends() {
    let server = Server::start(|seen| match seen.json()["method"].as_str() {
        Some("initialize") => {
            let result = json!({"protocolVersion": "2099-01-01", "capabilities": {}});
            let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result});
            reply(200, &[JSON[0], ("mcp-session-id", "s")], body.to_string())
        }
        Some(_) => reply(400, &[], "what?"),
        None => reply(204, &[], ""),
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    assert_eq!(before.send(modern("x", "tools/list", json!({}))).await.status, 502);
    // A revision that it cannot have said makes it be asked once more.
    let seen = got(&server, 4).await;
    assert_eq!(words(&seen)[..2], ["server/discover", "initialize"]);
    let ended = seen.iter().find(|seen| seen.method == "DELETE").unwrap();
    assert_eq!(ended.header("mcp-session-id"), Some("s"));
}

#[tokio::test]
async fn sessions_are_shared_by_requests_of_one_client_only_and_end_with_the_proxy() {
    let server = Server::start(with_sessions("a")).await;
    let mut before = Before::local(Dialect::Streamable, &server.address).await;
    let ask = async |token: &str| {
        let post = modern(1, "tools/list", json!({})).header("Authorization", token);
        before.send(post).await.json().await["result"]["session"].clone()
    };
    let first = ask("Bearer a").await;
    assert_eq!(ask("Bearer a").await, first);
    assert_ne!(ask("Bearer b").await, first);
    server.seen();
    before.stop().await;
    assert_eq!(words(&server.seen()), ["DELETE", "DELETE"]);
}

#[tokio::test]
async fn a_session_is_for_requests_that_say_the_same_to_the_server() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let ask = async |headers: &[(&str, &str)]| {
        let post = modern(1, "tools/list", json!({})).header("Authorization", "Bearer a");
        let post = headers.iter().fold(post, |post, (name, value)| post.header(name, value));
        before.send(post).await.json().await["result"]["session"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask(&[("X-Tenant", "a")]).await, "a-0");
    assert_eq!(ask(&[("X-Tenant", "b")]).await, "a-1", "what the first one has left is not for it");
    assert_eq!(ask(&[]).await, "a-2");
    // By which way a request came, and who traces it, says nothing about whom it is for.
    for (name, value) in [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("X-Amzn-Trace-Id", "Root=1"),
        ("X-B3-SpanId", "2"),
        ("X-Request-Id", "3"),
        ("Cf-Ray", "4"),
        ("X-Envoy-Attempt-Count", "5"),
        ("User-Agent", "6"),
        ("Accept-Language", "7"),
    ] {
        assert_eq!(ask(&[("X-Tenant", "a"), (name, value)]).await, "a-0", "{name}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let ask = async || {
        let post = modern(1, "tools/list", json!({})).header("Authorization", "Bearer a");
        before.send(post).await.json().await["result"]["session"].clone()
    };
    assert_eq!(ask().await, "a-0");
    server.replace(with_sessions("b"));
    assert_eq!(ask().await, "b-0");
}

#[tokio::test]
async fn nothing_is_found_out_from_a_refusal() {
    let (challenge, later) = (("www-authenticate", "Bearer scope=\"hive\""), ("retry-after", "7"));
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not now"}}"#;
    let said = [("text/plain", "no"), (JSON[0].1, error)];
    let refusals = [(401, challenge), (403, challenge), (408, later), (425, later), (429, later), (503, later)];
    for ((status, header), (kind, body)) in refusals.into_iter().flat_map(|refusal| said.map(|said| (refusal, said))) {
        let answer = move |seen: &Seen| {
            let status = if seen.method == "OPTIONS" { 204 } else { status };
            reply(status, &[header, ("content-type", kind)], body)
        };
        let server = Server::start(answer).await;
        let before = Before::remote(Dialect::Streamable, &format!("http://{}/mcp", server.address)).await;
        server.seen();
        for _ in 0..2 {
            let refused = before.send(modern(1, "tools/call", json!({"name": "a"}))).await;
            assert_eq!((refused.status, refused.header(header.0)), (status, Some(header.1)), "{kind}");
        }
        assert_eq!(words(&server.seen()), ["server/discover", "server/discover"], "and nothing was called");
    }
}

#[tokio::test]
async fn rule_19_nothing_is_found_out_from_what_is_no_answer() {
    let odd: [fn() -> Reply; 5] = [
        || reply(200, &[("content-type", "text/html")], "<html>back soon</html>"),
        || reply(200, &JSON, ""),
        || reply(202, &[], ""),
        || reply(200, &JSON, r#"{"jsonrpc":"2.0","id":"another","result":{}}"#),
        || reply(200, &streams::EVENTS, ": it ends here\n\n"),
    ];
    for odd in odd {
        let is_first = Mutex::new(true);
        let server = Server::start(move |seen| {
            let is_asked = seen.json()["method"] == "server/discover";
            if is_asked && std::mem::take(&mut *is_first.lock().unwrap()) { odd() } else { stands_alone(seen) }
        })
        .await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        server.seen();
        let mut refused = before.send(modern(1, "tools/list", json!({}))).await;
        let told = refused.text().await;
        assert!(refused.status == 502 && told.contains("server/discover"), "{told}");
        assert_eq!(before.send(modern(2, "tools/list", json!({}))).await.status, 200, "{told}");
        assert_eq!(words(&server.seen()), ["server/discover", "server/discover", "tools/list"], "{told}");
    }
}

#[tokio::test]
async fn clients_of_the_servers_era_pass_as_they_are() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    before.send(Request::post(&initialize("2025-11-25"))).await;
    let odd = "{ \"jsonrpc\":\"2.0\",\"id\" : 1e0,\"method\":\"tools/list\" , \"x\":[1.0]}";
    before.send(Request::post(&json!({})).body(odd).in_session("a-0")).await;
    let seen = server.seen();
    assert_eq!(words(&seen), ["initialize", "tools/list"], "the server was not asked what it speaks");
    assert_eq!(seen[1].body, odd);
}

#[tokio::test]
async fn a_client_of_sessions_calls_a_tool_of_a_server_without_any() {
    let server = Server::start(stands_alone).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut opened = before.send(Request::post(&initialize("2025-06-18")).plain()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let result = opened.json().await["result"].clone();
    assert_eq!((&result["protocolVersion"], &result["capabilities"]), (&json!("2025-06-18"), &json!({"tools": {}})));
    server.seen();
    let arguments = json!({"name": "weigh", "arguments": {"yard": "Zürich"}});
    let called = Request::post(&request("c", "tools/call", &arguments)).in_session(&session).plain();
    let answer = before.send(called.header("Mcp-Name", "another")).await.text().await;
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"c","result":{"content":[],"x":1.0}}"#);
    let seen = server.seen();
    // What the tool wants in headers was not known, so that the list was read.
    assert_eq!(words(&seen), ["tools/call", "tools/list", "tools/call"]);
    let called = &seen[2];
    assert_eq!((called.header("mcp-name"), called.header("mcp-method")), (Some("weigh"), Some("tools/call")));
    assert_eq!(called.header("mcp-param-yard"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!(called.header("mcp-protocol-version"), Some("2026-07-28"));
    assert!(seen.iter().all(|seen| seen.header("mcp-session-id").is_none()), "our session is not the server's affair");

    let mut listed =
        before.send(Request::post(&request(2, "tools/list", &json!({}))).in_session(&session).plain()).await;
    assert!(!listed.text().await.contains("x-mcp-header"));
    assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
    assert_eq!(before.send(Request::post(&call(3, "weigh")).in_session(&session)).await.status, 404);
}

#[tokio::test]
async fn a_handshake_that_is_refused_by_a_server_of_sessions_stays_refused() {
    let first = Mutex::new(true);
    let server = Server::start(move |seen| {
        let is_first = std::mem::take(&mut *first.lock().unwrap());
        let body =
            json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": -32000, "message": "not today"}});
        reply(if is_first { 204 } else { 400 }, &JSON, body.to_string())
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut refused = before.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!((refused.status, refused.json().await["error"]["message"].clone()), (400, json!("not today")));
}

#[tokio::test]
async fn a_client_of_sessions_is_asked_as_many_things_as_a_server_wants_to_know() {
    let server = Server::start(|seen| {
        let message = seen.json();
        if message["method"] != "tools/call" {
            return stands_alone(seen);
        }
        let question = json!({"method": "elicitation/create", "params": {"message": "why", "requestedSchema": {}}});
        let asked: serde_json::Map<String, Value> = (0..9).map(|key| (format!("q{key}"), question.clone())).collect();
        let result = match message["params"]["inputResponses"].as_object() {
            None => json!({"resultType": "input_required", "inputRequests": asked}),
            Some(told) => json!({"resultType": "complete", "content": [], "told": told.len()}),
        };
        reply(200, &JSON, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut offer = initialize("2025-11-25");
    offer["params"]["capabilities"] = json!({"elicitation": {}});
    let opened = before.send(Request::post(&offer).plain()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut stream = before.send(Request::post(&call(1, "weigh")).in_session(&session)).await;
    for _ in 0..9 {
        let asked = stream.message().await.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let told = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
        assert_eq!(before.send(Request::post(&told).in_session(&session)).await.status, 202);
    }
    assert_eq!(stream.message().await.unwrap()["result"]["told"], 9);
}
