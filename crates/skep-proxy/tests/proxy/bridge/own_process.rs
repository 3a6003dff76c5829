//! Sessions that have a process each.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{PATIENCE, Request, Response, call, initialize, modern, request};

/// A handshake of a client that can be asked.
fn offer() -> Value {
    let mut offer = initialize("2025-06-18");
    offer["params"]["capabilities"] = json!({"sampling": {}, "elicitation": {}});
    offer
}

fn question(id: &str) -> Value {
    request(id, "sampling/createMessage", &json!({"messages": [], "maxTokens": 1}))
}

fn logged(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}})
}

impl Setup {
    /// Begins a session, and gives the process that it has for itself.
    async fn begin_own(&mut self) -> (Server, String) {
        let address = self.address.clone();
        let (response, server) = tokio::join!(Request::post(&offer()).send(&address), async {
            let mut server = self.server().await;
            let asked = server.agree().await;
            assert_eq!(asked["params"], offer()["params"], "a process of one client hears that client");
            server
        });
        assert_eq!(response.status, 200);
        (server, response.header("mcp-session-id").unwrap().to_owned())
    }

    /// Asks in a session, and waits until the server was asked.
    async fn ask(&self, server: &mut Server, session: &str, id: u64) -> (Response, Value) {
        let post = Request::post(&call(id, "slow")).in_session(session);
        tokio::join!(self.send(post), server.expect("tools/call"))
    }
}

#[tokio::test]
async fn what_the_process_of_a_session_says_is_for_its_client_alone() {
    let mut setup = Setup::with_own_processes(2).await;
    let _shared = setup.server().await;
    let (mut first, a) = setup.begin_own().await;
    let (_second, b) = setup.begin_own().await;
    let mut heard_by_b = setup.send(Request::listen(&b)).await;
    let (mut stream, asked) = setup.ask(&mut first, &a, 1).await;
    first.write(&logged("hum")).await;
    first.write(&question("q")).await;
    assert_eq!(stream.message().await.unwrap(), logged("hum"));
    assert_eq!(stream.message().await.unwrap(), question("q"), "with the id that the server gave it");
    let reply = json!({"jsonrpc": "2.0", "id": "q", "result": {"role": "assistant"}});
    // Another client cannot answer for this one, with or without a session.
    let without = Request::post(&reply).header("MCP-Protocol-Version", "2025-06-18");
    for (stranger, status) in [(Request::post(&reply).in_session(&b), 202), (without, 400)] {
        assert_eq!(setup.send(stranger).await.status, status);
    }
    assert_eq!(setup.send(Request::post(&reply).in_session(&a)).await.status, 202);
    assert_eq!(first.read().await, reply);
    first.answer(&asked, &json!({"done": true})).await;
    assert_eq!(stream.message().await.unwrap()["result"], json!({"done": true}));
    assert_eq!(setup.send(Request::new("DELETE", "/mcp").in_session(&b)).await.status, 204);
    assert_eq!(heard_by_b.message().await, None);
}

#[tokio::test]
async fn a_question_outside_of_calls_reaches_a_client_that_listens_and_is_refused_otherwise() {
    let mut setup = Setup::with_own_processes(1).await;
    let _shared = setup.server().await;
    let (mut server, session) = setup.begin_own().await;
    server.write(&question("early")).await;
    let refused = server.read().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("early"), &json!(-32601)));
    // A client that takes nothing but JSON cannot be asked during its call.
    let plain = Request::post(&call(1, "slow")).plain().in_session(&session);
    let (mut answer, ()) = tokio::join!(setup.send(plain), async {
        let asked = server.expect("tools/call").await;
        server.write(&question("during")).await;
        let refused = server.read().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("during"), &json!(-32601)));
        server.answer(&asked, &json!({})).await;
    });
    assert_eq!(answer.json().await["result"], json!({}));
    let mut background = setup.send(Request::listen(&session)).await;
    server.write(&question("late")).await;
    assert_eq!(background.message().await.unwrap(), question("late"));
}

#[tokio::test]
async fn questions_that_a_client_leaves_unread_are_refused_when_there_are_too_many() {
    let mut setup = Setup::with_own_processes(1).await;
    let _shared = setup.server().await;
    let (mut server, session) = setup.begin_own().await;
    let (_unread, _asked) = setup.ask(&mut server, &session, 1).await;
    let mut large = question("q");
    large["params"]["pad"] = json!("x".repeat(100_000));
    // Much of it is on its way to the client, until the network takes no more.
    let mut refused = None;
    for _ in 0..1000 {
        server.write(&large).await;
        if let Ok(answer) = tokio::time::timeout(Duration::from_millis(1), server.next()).await {
            refused = answer;
            break;
        }
    }
    let refused = refused.expect("the proxy has kept all of it");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32603)));
}

#[tokio::test]
async fn whoever_has_no_session_shares_one_process_whatever_it_names() {
    let mut setup = Setup::with_own_processes(1).await;
    let mut shared = setup.server().await;
    let (mut own, session) = setup.begin_own().await;
    let (mut answer, asked) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain()), async {
        let asked = shared.agree().await;
        assert_eq!(asked["params"]["capabilities"], json!({}), "nothing is promised that cannot be shared");
        let message = shared.expect("tools/call").await;
        shared.answer(&message, &json!({"shared": true})).await;
        message
    });
    assert_eq!(asked["params"]["name"], "a");
    assert_eq!(answer.json().await["result"], json!({"shared": true}));
    setup.speak_modern(&mut shared).await;
    // A request that stands alone does not touch the session that it names.
    let stranger = modern(2, "tools/call", json!({"name": "b"})).plain().in_session(&session);
    let (answer, ()) = tokio::join!(setup.send(stranger), async {
        let message = shared.expect("tools/call").await;
        shared.answer(&message, &json!({"resultType": "complete"})).await;
    });
    assert_eq!(answer.status, 200);
    let (_stream, asked) = setup.ask(&mut own, &session, 3).await;
    assert_eq!(asked["params"]["name"], "slow", "that is all it was ever asked");
}

#[tokio::test]
async fn a_session_that_begins_waits_for_a_process_and_never_gets_a_used_one() {
    let mut setup = Setup::with_own_processes(1).await;
    let _shared = setup.server().await;
    let (mut first, a) = setup.begin_own().await;
    let address = setup.address.clone();
    let (response, ()) = tokio::join!(Request::post(&offer()).send(&address), async {
        assert_eq!(setup.send(Request::new("DELETE", "/mcp").in_session(&a)).await.status, 204);
        assert_eq!(first.next().await, None, "a process ends with its session");
        setup.server().await.agree().await;
    });
    assert_eq!(response.status, 200);
    let gone = setup.send(Request::post(&call(1, "x")).in_session(&a)).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn a_session_in_which_nothing_was_asked_makes_room_and_one_that_is_used_does_not() {
    let mut setup = Setup::with_own_processes(2).await;
    let _shared = setup.server().await;
    let (mut used, a) = setup.begin_own().await;
    let (mut unused, b) = setup.begin_own().await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for session in [&a, &b] {
        assert_eq!(setup.send(Request::post(&initialized).in_session(session)).await.status, 202);
    }
    let (mut stream, asked) = setup.ask(&mut used, &a, 1).await;
    used.answer(&asked, &json!({})).await;
    assert_eq!(stream.message().await.unwrap()["result"], json!({}));
    let address = setup.address.clone();
    let (response, ()) = tokio::join!(Request::post(&offer()).send(&address), async {
        assert_eq!(tokio::time::timeout(PATIENCE, unused.next()).await.unwrap(), None);
        setup.server().await.agree().await;
    });
    assert_eq!(response.status, 200, "it did not have to wait longer than it may");
    assert_eq!(setup.send(Request::post(&call(2, "x")).in_session(&b)).await.status, 404);
    let (_stream, asked) = setup.ask(&mut used, &a, 3).await;
    assert_eq!(asked["params"]["name"], "slow");
}

#[tokio::test]
async fn a_session_outlives_its_process() {
    let mut setup = Setup::with_own_processes(1).await;
    let _shared = setup.server().await;
    let (first, session) = setup.begin_own().await;
    drop(first);
    let mut second = setup.server().await;
    assert_eq!(second.agree().await["params"], offer()["params"], "it hears what the one before has heard");
    let answering = tokio::spawn(async move {
        while let Some(message) = second.next().await {
            second.answer(&message, &json!({"again": true})).await;
        }
    });
    let patient = async {
        loop {
            let mut answer = setup.send(Request::post(&call(1, "x")).plain().in_session(&session)).await;
            if answer.status == 200 {
                break answer.json().await;
            }
            assert_eq!(answer.status, 503, "it is not known to be ready yet");
        }
    };
    let answer = tokio::time::timeout(PATIENCE, patient).await.unwrap();
    assert_eq!(answer["result"], json!({"again": true}));
    answering.abort();
}

#[tokio::test]
async fn a_proxy_that_stops_ends_the_processes_of_sessions() {
    let mut setup = Setup::with_own_processes(1).await;
    let _shared = setup.server().await;
    let (mut own, session) = setup.begin_own().await;
    let (mut stream, asked) = setup.ask(&mut own, &session, 1).await;
    setup.stop.cancel();
    own.answer(&asked, &json!({"last": true})).await;
    assert_eq!(stream.message().await.unwrap()["result"], json!({"last": true}), "what is under way may finish");
    assert_eq!(own.next().await, None);
    (&mut setup.link).await.unwrap().unwrap();
}

#[tokio::test]
async fn clients_of_events_have_processes_too() {
    let mut setup = Setup::sse_with_own_processes(2).await;
    let _shared = setup.server().await;
    let mut clients = Vec::new();
    for number in 0..2 {
        let mut stream = setup.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await;
        let mut server = setup.server().await;
        let endpoint = stream.event().await.unwrap();
        let endpoint = endpoint.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let path = endpoint.split_once(&setup.address).unwrap().1.to_owned();
        let post = |message: &Value| {
            Request::new("POST", &path).header("Content-Type", "application/json").body(message.to_string())
        };
        assert_eq!(setup.send(post(&offer())).await.status, 202);
        assert_eq!(server.agree().await["params"], offer()["params"]);
        assert_eq!(stream.message().await.unwrap()["id"], "init");
        server.write(&question(&format!("q{number}"))).await;
        assert_eq!(stream.message().await.unwrap(), question(&format!("q{number}")));
        let reply = json!({"jsonrpc": "2.0", "id": format!("q{number}"), "result": {}});
        assert_eq!(setup.send(post(&reply)).await.status, 202);
        assert_eq!(server.read().await, reply);
        clients.push((stream, server));
    }
    let (stream, mut server) = clients.remove(0);
    drop(stream);
    assert_eq!(server.next().await, None, "a process ends with its client");
}
