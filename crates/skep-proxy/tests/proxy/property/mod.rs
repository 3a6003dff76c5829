//! Whatever a message holds besides what the protocol needs, whatever it is called and however it comes, goes through every
//! kind of proxy byte for byte.

mod odd;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Message, MetaKey};
use skep_proxy::Forwarded;
use skep_proxy::middleware::{Chain, Shown, Step, ToolRules};
use skep_proxy::transparent::Dialect;
use tokio::runtime::Runtime;

use self::odd::{Form, Kind, Odd, View, event, odd};
use crate::bridge::server::{Server as Process, Setup};
use crate::bridge::sse;
use crate::eras::stands_alone;
use crate::http::{Request, Response, initialize, modern};
use crate::transparent::dialled::{self, Streams};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// Requests that are sent through each kind of proxy.
const CASES: u32 = 48;
const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("content-type", "text/event-stream");
/// Where a server puts the id and the token that it was sent.
const PLACES: [&str; 2] = ["\"ID\"", "\"TOKEN\""];
const NO_MORE: [&str; 2] = [""; 2];

const CLAIMS: &str =
    r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

fn check(through: impl Fn(&Runtime, &Odd) -> Result<(), TestCaseError>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    runner.run(&odd(), |odd| through(&runtime, &odd)).unwrap_or_else(|failed| panic!("{failed}"));
}

/// What a server answers the next time: a kind of body, and the body.
type Said = Arc<Mutex<((&'static str, &'static str), String)>>;

fn nothing() -> Said {
    Arc::new(Mutex::new((JSON, String::new())))
}

fn say(said: &Said, odd: &Odd, messages: &[String]) {
    let kind = if odd.form == Form::Json { JSON } else { EVENTS };
    *said.lock().unwrap() = (kind, odd.body(messages));
}

/// A server that answers what odd messages ask with what was put there.
fn told<F: Fn(&Seen) -> Reply + Send + Sync + 'static>(
    said: &Said,
    other: F,
) -> impl Fn(&Seen) -> Reply + Send + Sync + use<F> {
    let said = Arc::clone(said);
    move |seen| match asked_in(seen) {
        Some(asked) => {
            let (kind, body) = said.lock().unwrap().clone();
            reply(200, &[kind], named(&asked, &body))
        }
        None => other(seen),
    }
}

/// The odd message that a request is, if it is one.
fn asked_in(seen: &Seen) -> Option<Message> {
    let message = Message::read(seen.body.clone()).ok()?;
    matches!(message.method(), "tools/call" | "tools/list").then_some(message)
}

/// What a server says, with the id and the token of what was asked.
fn named(asked: &Message, said: &str) -> String {
    let token = asked.meta(MetaKey::ProgressToken).unwrap_or("0");
    said.replace(PLACES[0], asked.id().unwrap()).replace(PLACES[1], token)
}

fn handshake(seen: &Seen) -> Reply {
    let message = seen.json();
    match (seen.method.as_str(), message["method"].as_str()) {
        ("POST", Some("initialize")) => {
            let result = json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            reply(200, &[JSON, ("mcp-session-id", "s")], body.to_string())
        }
        ("POST", Some("server/discover")) => reply(400, &[], "what?"),
        _ => reply(202, &[], ""),
    }
}

/// The one odd message that a server got.
fn asked(server: &Server) -> String {
    let asked: Vec<Message> = server.seen().iter().filter_map(asked_in).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked[0].as_str().to_owned()
}

/// What a client of sessions sends.
fn post(odd: &Odd, body: String) -> Request {
    let post = Request::post(&Value::Null).body(body);
    if odd.form == Form::Events { post } else { post.plain() }
}

/// What a client sends whose requests stand alone.
fn alone(odd: &Odd, body: String) -> Request {
    let params = if odd.kind == Kind::List { json!({}) } else { json!({"name": "a"}) };
    modern(1, odd.method(), params).body(body)
}

/// The messages of a response, as they were written.
async fn messages(mut response: Response) -> Vec<String> {
    let is_stream = response.header(EVENTS.0) == Some(EVENTS.1);
    let text = response.text().await;
    if is_stream { messages_in(&text) } else { vec![text] }
}

/// The messages of a stream. Events without data only give an id to come back with.
fn messages_in(stream: &str) -> Vec<String> {
    let mut splitter = Splitter::new(1 << 20);
    splitter.push(stream.as_bytes());
    let events = std::iter::from_fn(|| splitter.next_piece());
    let data = |piece| {
        let Piece::Event(event) = piece else { panic!("an event is too large") };
        Event::read(&event).data.map(|data| String::from_utf8(data.into_owned()).unwrap())
    };
    events.filter_map(data).filter(|data| !data.is_empty()).collect()
}

/// A member of a message, as it was written.
fn within<'a>(message: &'a str, name: &str) -> &'a str {
    let found = skep_mcp::json::find(message, &[name]).ok().flatten();
    found.unwrap_or_else(|| panic!("no {name}: {message}")).of(message)
}

/// What a request is known by before a proxy that knows it by a number: that number.
fn number(message: &str) -> [&str; 2] {
    [within(message, "id"); 2]
}

#[test]
fn what_passes_between_peers_of_one_era_is_not_touched() {
    let said = nothing();
    let start = Runtime::new().unwrap();
    let (legacy, newer) = start.block_on(async {
        let servers = (Server::start(told(&said, handshake)).await, Server::start(told(&said, stands_alone)).await);
        let before = (
            Before::local(Dialect::Streamable, &servers.0.address).await,
            Before::local(Dialect::Streamable, &servers.1.address).await,
        );
        before.0.send(Request::post(&initialize("2025-11-25"))).await;
        ((servers.0, before.0), (servers.1, before.1))
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let sent = odd.request(odd.own(), "a", "");
            let answered = odd.answers(odd.own(), View::Whole, NO_MORE);
            say(&said, odd, &answered);
            let got = legacy.1.send(post(odd, sent.clone()).in_session("s")).await.text().await;
            prop_assert_eq!(asked(&legacy.0), sent);
            prop_assert_eq!(got, odd.body(&answered));

            let sent = odd.request(odd.own(), "a", CLAIMS);
            let answered = odd.answers(odd.own(), View::Alone, ["", odd.complete()]);
            say(&said, odd, &answered);
            let got = newer.1.send(alone(odd, sent.clone())).await.text().await;
            prop_assert_eq!(asked(&newer.0), &sent[..]);
            prop_assert_eq!(&got, &odd.body(&answered));
            // What has to be said is said, and nothing else is touched.
            say(&said, odd, &odd.answers(odd.own(), View::Whole, NO_MORE));
            let got = newer.1.send(alone(odd, sent)).await.text().await;
            newer.0.seen();
            prop_assert_eq!(got, odd.body(&answered));
            Ok(())
        })
    });
}

#[test]
fn what_passes_a_bridge_of_eras_keeps_every_other_byte() {
    let said = nothing();
    let start = Runtime::new().unwrap();
    let (older_server, newer_client, newer_server, older_client, session) = start.block_on(async {
        let (older, newer) =
            (Server::start(told(&said, handshake)).await, Server::start(told(&said, stands_alone)).await);
        let newer_client = Before::local(Dialect::Streamable, &older.address).await;
        let older_client = Before::local(Dialect::Streamable, &newer.address).await;
        let opened = older_client.send(Request::post(&initialize("2025-11-25")).plain()).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        (older, newer_client, newer, older_client, session)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            // Ids are the proxy's own on the way to the server, and the client's on the way back.
            say(&said, odd, &odd.answers(PLACES, View::Whole, NO_MORE));
            let got = messages(newer_client.send(alone(odd, odd.request(odd.own(), "a", CLAIMS))).await).await;
            let seen = asked(&older_server);
            prop_assert_eq!(&seen, &odd.request(number(&seen), "a", ""));
            prop_assert_eq!(got, odd.answers(odd.own(), View::AloneInSession, ["", odd.complete()]));
            say(&said, odd, &odd.errors(PLACES));
            let got = messages(newer_client.send(alone(odd, odd.request(odd.own(), "a", CLAIMS))).await).await;
            prop_assert_eq!(got, odd.errors(odd.own()));
            older_server.seen();

            say(&said, odd, &odd.answers(PLACES, View::Whole, ["", odd.complete()]));
            let ask = || older_client.send(post(odd, odd.request(odd.own(), "a", "")).in_session(&session));
            let got = messages(ask().await).await;
            let seen = asked(&newer_server);
            let client = format!(
                r#","io.modelcontextprotocol/clientInfo":{{"name":"skep","version":"{}"}}"#,
                env!("CARGO_PKG_VERSION")
            );
            prop_assert_eq!(&seen, &odd.request(number(&seen), "a", &format!("{CLAIMS}{client}")));
            prop_assert_eq!(got, odd.answers(odd.own(), View::InSession, NO_MORE));
            say(&said, odd, &odd.errors(PLACES));
            prop_assert_eq!(messages(ask().await).await, odd.errors(odd.own()));
            newer_server.seen();
            Ok(())
        })
    });
}

#[test]
fn what_rules_about_tools_leave_alone_keeps_every_byte() {
    let said = nothing();
    let start = Runtime::new().unwrap();
    let (server, before) = start.block_on(async {
        let server = Server::start(told(&said, handshake)).await;
        let (before, middleware) = Before::chained(&server, Dialect::Streamable).await;
        let shown = Shown { name: "shown".to_owned(), description: "d".to_owned(), ..Shown::default() };
        let names = ["a", "marked", "shown"].map(str::to_owned).into();
        let rules = ToolRules::new(names, BTreeMap::from([("task".to_owned(), shown)])).unwrap();
        middleware.replace(Chain::new(vec![Step::ToolLists(rules.clone()), Step::ToolCalls(rules)]));
        before.send(Request::post(&initialize("2025-11-25"))).await;
        (server, before)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            say(&said, odd, &odd.answers(odd.own(), View::Whole, NO_MORE));
            let sent = odd.request(odd.own(), "shown", "");
            let got = messages(before.send(post(odd, sent).in_session("s")).await).await;
            prop_assert_eq!(asked(&server), odd.request(odd.own(), "task", ""));
            prop_assert_eq!(got, odd.answers(odd.own(), View::Ruled, NO_MORE));
            Ok(())
        })
    });
}

/// A process of sessions, past its handshake, and what clients reach it by.
struct Spoken {
    setup: Setup,
    process: tokio::sync::Mutex<Process>,
}

impl Spoken {
    /// Sends a request, answers it on a line and gives the line that the process got.
    async fn send(&self, odd: &Odd, request: Request) -> (Response, String) {
        let mut process = self.process.lock().await;
        tokio::join!(self.setup.send(request), async {
            let line = process.line().await;
            for message in odd.on_one_line().answers(number(&line), View::Whole, NO_MORE) {
                process.write_line(&message).await;
            }
            line
        })
    }
}

#[test]
fn what_passes_a_process_keeps_every_other_byte() {
    const SERVER: &str = r#","io.modelcontextprotocol/serverInfo":{"name":"played"}"#;
    let start = Runtime::new().unwrap();
    let (spoken, session) = start.block_on(async {
        let mut setup = Setup::streamable().await;
        let (mut process, session) = setup.begin().await;
        let (answer, ()) = tokio::join!(setup.send(modern(0, "tools/list", json!({}))), async {
            let question = process.expect("server/discover").await;
            let error = json!({"code": -32601, "message": "what?"});
            process.write(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error})).await;
            let list = process.expect("tools/list").await;
            process.answer(&list, &json!({"tools": []})).await;
        });
        assert_eq!(answer.status, 200);
        (Spoken { setup, process: tokio::sync::Mutex::new(process) }, session)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            // A message is a line there, so that a line end within it is a space.
            let line = odd.on_one_line();
            let request = post(odd, odd.request(odd.own(), "a", "")).in_session(&session);
            let (got, seen) = spoken.send(odd, request).await;
            prop_assert_eq!(&seen, &line.request(number(&seen), "a", ""));
            prop_assert_eq!(messages(got).await, line.answers(odd.own(), View::Whole, NO_MORE));

            let (got, seen) = spoken.send(odd, alone(odd, odd.request(odd.own(), "a", CLAIMS))).await;
            prop_assert_eq!(&seen, &line.request(number(&seen), "a", ""));
            let expected = line.answers(odd.own(), View::AloneInSession, [SERVER, odd.complete()]);
            prop_assert_eq!(messages(got).await, expected);
            Ok(())
        })
    });
}

#[test]
fn what_passes_a_process_by_the_older_transport_keeps_every_other_byte() {
    let start = Runtime::new().unwrap();
    let (spoken, stream, path) = start.block_on(async {
        let mut setup = Setup::sse(Forwarded::default()).await;
        let (process, stream, path) = sse::begin(&mut setup).await;
        let process = tokio::sync::Mutex::new(process);
        (Spoken { setup, process }, tokio::sync::Mutex::new(stream), path)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let line = odd.on_one_line();
            let request = post(odd, odd.request(odd.own(), "a", "")).at(&path);
            let (accepted, seen) = spoken.send(odd, request).await;
            prop_assert_eq!(accepted.status, 202);
            prop_assert_eq!(&seen, &line.request(number(&seen), "a", ""));
            let mut stream = stream.lock().await;
            for expected in line.answers(odd.own(), View::Whole, NO_MORE) {
                prop_assert_eq!(messages_in(&stream.event().await.unwrap()), [expected]);
            }
            Ok(())
        })
    });
}

/// A server of HTTP+SSE that answers odd messages with what was put there.
fn on_the_older_transport(said: &Said, streams: &Streams) -> impl Fn(&Seen) -> Reply + Send + Sync + use<> {
    let (said, streams) = (Arc::clone(said), Arc::clone(streams));
    let handshake = dialled::on_sse(&streams);
    move |seen| {
        let Some(asked) = asked_in(seen) else { return handshake(seen) };
        let stream = streams.lock().unwrap().last().unwrap().clone().unwrap();
        stream.send(named(&asked, &said.lock().unwrap().1).into()).unwrap();
        reply(202, &[], "")
    }
}

#[test]
fn what_passes_to_the_older_transport_keeps_every_other_byte() {
    let (said, streams) = (nothing(), Streams::default());
    let start = Runtime::new().unwrap();
    let (server, before, session) = start.block_on(async {
        let server = Server::start(on_the_older_transport(&said, &streams)).await;
        let before = Before::local(Dialect::Sse, &server.address).await;
        let opened = before.send(Request::post(&initialize("2025-11-25"))).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        (server, before, session)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let line = odd.on_one_line();
            let answered = odd.answers(PLACES, View::Whole, NO_MORE);
            *said.lock().unwrap() = (EVENTS, answered.iter().map(|message| event(message)).collect());
            let request = post(odd, odd.request(odd.own(), "a", "")).in_session(&session);
            let got = messages(before.send(request).await).await;
            let seen = asked(&server);
            prop_assert_eq!(&seen, &line.request(number(&seen), "a", ""));
            prop_assert_eq!(got, line.answers(odd.own(), View::Whole, NO_MORE));
            Ok(())
        })
    });
}

#[test]
fn what_passes_from_the_older_transport_keeps_every_other_byte() {
    let said = nothing();
    let start = Runtime::new().unwrap();
    let (server, before, stream, path) = start.block_on(async {
        let streamable = |seen: &Seen| if seen.method == "GET" { reply(405, &[], "") } else { handshake(seen) };
        let server = Server::start(told(&said, streamable)).await;
        let before = Before::local(Dialect::Streamable, &server.address).await;
        let open = Request::new("GET", "/sse").header("Accept", "text/event-stream");
        let mut stream = before.send(open).await;
        let endpoint = messages_in(&stream.event().await.unwrap()).remove(0);
        let path = endpoint.strip_prefix(&format!("http://{}", before.address)).unwrap().to_owned();
        before.send(Request::post(&initialize("2024-11-05")).at(&path)).await;
        assert_eq!(stream.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
        (server, before, tokio::sync::Mutex::new(stream), path)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let line = odd.on_one_line();
            say(&said, odd, &odd.answers(PLACES, View::Whole, NO_MORE));
            let accepted = before.send(post(odd, odd.request(odd.own(), "a", "")).at(&path)).await;
            prop_assert_eq!(accepted.status, 202);
            let mut stream = stream.lock().await;
            for expected in line.answers(odd.own(), View::Whole, NO_MORE) {
                prop_assert_eq!(messages_in(&stream.event().await.unwrap()), [expected]);
            }
            let seen = asked(&server);
            prop_assert_eq!(&seen, &line.request(number(&seen), "a", ""));
            Ok(())
        })
    });
}
