//! Clients of streamable HTTP, with sessions and without, before a server that speaks HTTP+SSE only, and the other way
//! round.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;
use tokio::sync::mpsc;

use super::server::{Before, Reply, Seen, Server, reply, with_sessions};
use crate::http::{PATIENCE, Request, call, initialize, modern};

/// The streams of a server, each under its number.
pub(crate) type Streams = Arc<Mutex<Vec<Option<mpsc::UnboundedSender<Bytes>>>>>;

pub(crate) fn say(stream: &mpsc::UnboundedSender<Bytes>, message: &Value) {
    // Whoever does not listen any more is not told.
    let _ = stream.send(format!("event: message\ndata: {message}\n\n").into());
}

/// Opens a stream, and says where messages go.
fn open(streams: &Streams) -> Reply {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut streams = streams.lock().unwrap();
    sender.send(format!("event: endpoint\ndata: /messages?sessionId={}\n\n", streams.len()).into()).unwrap();
    streams.push(Some(sender));
    let frames = futures::stream::poll_fn(move |context| {
        receiver
            .poll_recv(context)
            .map(|chunk: Option<Bytes>| chunk.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk))))
    });
    let body = StreamBody::new(frames).boxed();
    Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
}

/// What a server answers to a request within the stream of this number. Nothing to what wants no answer.
type Result = fn(&Seen, usize) -> Option<Value>;

/// A server that tells in its results by whom and in which session it was asked.
pub(crate) fn on_sse(streams: &Streams) -> impl Fn(&Seen) -> Reply + Send + Sync + use<> {
    answering(streams, by_whom)
}

/// A server that answers so.
pub(crate) fn answering(streams: &Streams, result: Result) -> impl Fn(&Seen) -> Reply + Send + Sync + use<> {
    let streams = Arc::clone(streams);
    move |seen| {
        if seen.method == "GET" && seen.target == "/sse" {
            return open(&streams);
        }
        let number = seen.target.strip_prefix("/messages?sessionId=").and_then(|number| number.parse::<usize>().ok());
        let Some(number) = number else { return reply(404, &[], "no such page") };
        let message = seen.json();
        let stream = streams.lock().unwrap()[number].clone();
        let (Some(stream), "POST") = (stream, seen.method.as_str()) else { return reply(404, &[], "no such session") };
        if message["params"]["name"] == "refused" {
            return reply(400, &[], "not that");
        }
        if let Some(result) = result(seen, number) {
            say(&stream, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        reply(202, &[], "Accepted")
    }
}

/// Tells by whom and in which session the server was asked.
fn by_whom(seen: &Seen, session: usize) -> Option<Value> {
    let message = seen.json();
    match message["method"].as_str() {
        Some("initialize") => Some(json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "s"},
        })),
        Some(_) if message.get("id").is_some() => {
            Some(json!({"content": [], "session": session, "as": seen.header("authorization")}))
        }
        _ => None,
    }
}

async fn setup() -> (Server, Before, Streams) {
    let streams = Streams::default();
    let server = Server::start(on_sse(&streams)).await;
    let before = Before::local(Dialect::Sse, &server.address).await;
    (server, before, streams)
}

/// Begins a session at a path, as somebody.
async fn begin(before: &Before, path: &str, token: &str) -> String {
    let body = initialize("2025-06-18").to_string();
    let post = Request::new("POST", path).header("Content-Type", "application/json").body(body);
    let post = post.header("Accept", "application/json, text/event-stream").header("Authorization", token);
    let mut response = before.send(post).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.message().await.unwrap()["result"]["protocolVersion"], "2025-06-18");
    response.header("mcp-session-id").unwrap().to_owned()
}

#[tokio::test]
async fn each_session_has_a_stream_of_its_own_and_shows_what_its_client_shows_now() {
    let (_server, before, streams) = setup().await;
    let (a, b) = (begin(&before, "/sse", "Bearer a").await, begin(&before, "/mcp", "Bearer b").await);
    let ask = async |session: &str, token: &str| {
        let post = Request::post(&call(7, "t")).in_session(session).header("Authorization", token);
        before.send(post).await.message().await.unwrap()["result"].clone()
    };
    let told = |session: u64, token: &str| json!({"content": [], "session": session, "as": token});
    assert_eq!(ask(&a, "Bearer a").await, told(0, "Bearer a"));
    assert_eq!(ask(&b, "Bearer b").await, told(1, "Bearer b"));
    assert_eq!(ask(&a, "Bearer fresh").await, told(0, "Bearer fresh"));

    // What belongs to no request is for the one whose stream it came by.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let mut listening = before.send(Request::listen(&a)).await;
    say(streams.lock().unwrap()[0].as_ref().unwrap(), &changed);
    assert_eq!(listening.message().await.unwrap(), changed);

    assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session(&a)).await.status, 204);
    let sender = streams.lock().unwrap()[0].clone().unwrap();
    tokio::time::timeout(PATIENCE, sender.closed()).await.unwrap();
    assert_eq!(before.send(Request::post(&call(1, "t")).in_session(&a)).await.status, 404);
    assert_eq!(before.send(Request::post(&call(1, "t"))).await.status, 400, "there is no session to ask in");
}

#[tokio::test]
async fn requests_that_stand_alone_are_asked_within_sessions() {
    let (server, mut before, streams) = setup().await;
    server.seen();
    let ask = async |token: &str| {
        let post = modern("x", "tools/call", json!({"name": "t"})).header("Authorization", token);
        before.send(post).await.json().await["result"].clone()
    };
    let first = ask("Bearer a").await;
    assert_eq!((&first["as"], &first["resultType"]), (&json!("Bearer a"), &json!("complete")));
    assert_eq!(ask("Bearer a").await["session"], first["session"]);
    assert_ne!(ask("Bearer b").await["session"], first["session"]);
    assert!(server.seen().iter().all(|seen| seen.json()["method"] != "server/discover"), "its transport tells its era");
    before.stop().await;
    let senders = std::mem::take(&mut *streams.lock().unwrap());
    for sender in senders.iter().flatten() {
        // Sessions end with the proxy, as soon as the server sees that their streams are gone.
        tokio::time::timeout(PATIENCE, sender.closed()).await.unwrap();
    }
}

#[tokio::test]
async fn what_the_server_refuses_is_told() {
    let (server, before, _streams) = setup().await;
    let session = begin(&before, "/sse", "Bearer a").await;
    let refused = before.send(Request::post(&call(3, "refused")).in_session(&session)).await.message().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32603)));
    server.replace(|seen| match seen.method.as_str() {
        "GET" => reply(401, &[("www-authenticate", "Bearer scope=\"hive\"")], ""),
        _ => reply(204, &[], ""),
    });
    for post in [Request::post(&initialize("2025-11-25")), modern(1, "tools/list", json!({}))] {
        let challenged = before.send(post).await;
        assert_eq!((challenged.status, challenged.header("www-authenticate")), (401, Some("Bearer scope=\"hive\"")));
    }
}

/// What a client that opened a session has, for as long as it keeps it.
async fn open_from(before: &Before, source: [u8; 4]) -> crate::http::Response {
    Request::post(&initialize("2025-06-18")).send_from(source, &before.address).await
}

#[tokio::test]
async fn rule_25_one_client_does_not_take_the_sessions_of_all_others() {
    const ANN: [u8; 4] = [127, 0, 0, 2];
    const BOB: [u8; 4] = [127, 0, 0, 3];
    let (_server, before, _streams) = setup().await;
    let mut session = String::new();
    for number in 0..256 {
        let opened = open_from(&before, ANN).await;
        assert_eq!(opened.status, 200, "{number}");
        opened.header("mcp-session-id").unwrap().clone_into(&mut session);
    }
    let mut refused = open_from(&before, ANN).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.json().await["error"]["code"], -32603);
    assert_eq!(open_from(&before, BOB).await.status, 200);
    let ended = Request::new("DELETE", "/mcp").in_session(&session).send_from(ANN, &before.address).await;
    assert_eq!(ended.status, 204);
    let again = async { while open_from(&before, ANN).await.status == 429 {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn what_the_server_is_slow_to_take_ends_with_the_session_and_with_the_proxy() {
    for is_stopped in [false, true] {
        let streams = Streams::default();
        let (taken, mut held) = mpsc::unbounded_channel();
        let sse = on_sse(&streams);
        let server = Server::start(move |seen| match seen.json()["method"].as_str() {
            Some("notifications/roots/list_changed") => {
                // It says that it takes the message, and never comes to the end of that.
                let (sender, receiver) = mpsc::unbounded_channel();
                taken.send(sender).unwrap();
                super::streams::stream(&[], receiver)
            }
            _ => sse(seen),
        })
        .await;
        let mut before = Before::local(Dialect::Sse, &server.address).await;
        let session = begin(&before, "/sse", "Bearer a").await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
        assert_eq!(before.send(Request::post(&told).in_session(&session)).await.status, 202);
        let body = tokio::time::timeout(PATIENCE, held.recv()).await.unwrap().unwrap();
        body.send("taken, but").unwrap();
        if is_stopped {
            before.stop().await;
        } else {
            assert_eq!(before.send(Request::new("DELETE", "/mcp").in_session(&session)).await.status, 204);
        }
        tokio::time::timeout(PATIENCE, body.closed()).await.unwrap();
    }
}

#[tokio::test]
async fn rule_23_messages_go_to_no_other_server() {
    let elsewhere = Server::start(|_| reply(202, &[], "")).await;
    let address = elsewhere.address.clone();
    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" => {
            let body = format!("event: endpoint\ndata: http://{address}/messages\n\n");
            reply(200, &[("content-type", "text/event-stream")], body)
        }
        _ => reply(204, &[], ""),
    })
    .await;
    let before = Before::local(Dialect::Sse, &server.address).await;
    for post in [Request::post(&initialize("2025-11-25")), modern(1, "tools/list", json!({}))] {
        assert_eq!(before.send(post.header("Authorization", "Bearer a")).await.status, 502);
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn clients_of_the_servers_own_transport_pass_as_they_are() {
    let (server, before, _streams) = setup().await;
    let mut stream = before.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await;
    assert_eq!(stream.event().await.unwrap(), "event: endpoint\ndata: /messages?sessionId=0\n\n");
    server.seen();
    let odd = "{ \"jsonrpc\":\"2.0\",\"id\" : 1e0,\"method\":\"tools/list\" , \"x\":[1.0]}";
    let post = Request::new("POST", "/messages?sessionId=0").header("Content-Type", "application/json").body(odd);
    assert_eq!(before.send(post.header("Accept", "text/event-stream")).await.status, 202);
    assert_eq!(server.seen()[0].body, odd);
    assert_eq!(stream.message().await.unwrap()["result"]["session"], 0);
}

/// Long enough for others to do something meanwhile.
const MOMENT: Duration = Duration::from_millis(20);

/// A client of HTTP+SSE that is past its handshake.
struct Older {
    stream: crate::http::Response,
    path: String,
}

impl Older {
    async fn begin(before: &Before) -> Self {
        let mut stream = before.send(Request::new("GET", "/sse").header("Accept", "text/event-stream")).await;
        let event = stream.event().await.unwrap();
        let path = event[event.find("/mcp").unwrap()..].trim_end().to_owned();
        let mut older = Self { stream, path };
        assert_eq!(older.post(before, &initialize("2024-11-05")).await, 202);
        assert_eq!(older.stream.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
        older
    }

    async fn post(&self, before: &Before, message: &Value) -> u16 {
        let post = Request::new("POST", &self.path).header("Content-Type", "application/json");
        before.send(post.body(message.to_string())).await.status
    }

    async fn ask(&mut self, before: &Before, id: u64) -> Value {
        assert_eq!(self.post(before, &call(id, "t")).await, 202);
        self.stream.message().await.unwrap()
    }

    /// Asks until there is a result. Meanwhile the proxy says that it is not ready, or that the server went away.
    async fn ask_again(&mut self, before: &Before) -> Value {
        let asking = async {
            for id in 100.. {
                if self.post(before, &call(id, "t")).await == 202 {
                    let answer = self.stream.message().await.unwrap();
                    assert_eq!(answer["id"], id);
                    if answer.get("result").is_some() {
                        return answer["result"].clone();
                    }
                }
                tokio::time::sleep(MOMENT).await;
            }
            unreachable!("there always is another id")
        };
        tokio::time::timeout(PATIENCE, asking).await.unwrap()
    }
}

#[tokio::test]
async fn a_client_of_the_older_transport_outlives_the_sessions_of_its_server_more_than_once() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut older = Older::begin(&before).await;
    assert_eq!(older.ask(&before, 1).await["result"]["session"], "a-0");
    for letter in ["b", "c"] {
        // It answers that it knows no such session.
        server.replace(with_sessions(letter));
        let refused = older.ask(&before, 2).await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)));
        assert_eq!(older.ask_again(&before).await["session"], format!("{letter}-0"));
        assert_eq!(older.ask(&before, 3).await["result"]["session"], format!("{letter}-0"));
        let seen = server.seen();
        assert_eq!(seen.iter().filter(|seen| seen.json()["method"] == "initialize").count(), 1);
        assert!(seen.iter().all(|seen| seen.method != "DELETE"), "there is nothing to end");
    }
}

#[tokio::test]
async fn the_session_at_the_server_ends_with_the_stream_of_its_client() {
    let server = Server::start(with_sessions("a")).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut older = Older::begin(&before).await;
    assert_eq!(older.ask(&before, 1).await["result"]["session"], "a-0");
    drop(older);
    let ended = async {
        loop {
            if let Some(ended) = server.seen().into_iter().find(|seen| seen.method == "DELETE") {
                return ended;
            }
            tokio::time::sleep(MOMENT).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert_eq!((ended.target.as_str(), ended.header("mcp-session-id")), ("/mcp", Some("a-0")));
}

#[tokio::test]
async fn a_client_of_the_older_transport_is_sent_away_when_its_credentials_are_not_taken_any_more() {
    let (opened, mut streams) = mpsc::unbounded_channel();
    let sessions = with_sessions("a");
    let server = Server::start(move |seen| match seen.header("mcp-session-id") {
        Some(_) if seen.method == "GET" => {
            let (sender, receiver) = mpsc::unbounded_channel();
            if opened.send(sender).is_err() {
                return reply(401, &[("www-authenticate", "Bearer")], "");
            }
            super::streams::stream(&[("content-type", "text/event-stream")], receiver)
        }
        _ => sessions(seen),
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let mut older = Older::begin(&before).await;
    assert_eq!(older.ask(&before, 1).await["result"]["session"], "a-0");
    // From now on the server takes its credentials for nothing.
    let stream = tokio::time::timeout(PATIENCE, streams.recv()).await.unwrap().unwrap();
    streams.close();
    server.seen();
    drop(stream);
    assert_eq!(tokio::time::timeout(PATIENCE, older.stream.message()).await.unwrap(), None);
    let asked = server.seen().iter().filter(|seen| seen.method == "GET" && seen.target == "/mcp").count();
    assert_eq!(asked, 1, "it is asked once");
}

#[tokio::test]
async fn a_session_goes_on_while_the_server_is_away_and_ends_when_its_credentials_are_not_taken_any_more() {
    for (status, goes_on) in [(503, true), (401, false)] {
        let (server, before, streams) = setup().await;
        let session = begin(&before, "/sse", "Bearer a").await;
        let mut listening = before.send(Request::listen(&session)).await;
        let (again, refused) = (on_sse(&streams), Mutex::new(false));
        server.replace(move |seen| {
            if seen.method == "GET" && (!goes_on || !std::mem::replace(&mut *refused.lock().unwrap(), true)) {
                return reply(status, &[], "");
            }
            again(seen)
        });
        streams.lock().unwrap()[0] = None;
        if goes_on {
            let answered = async {
                loop {
                    let mut answer = before.send(Request::post(&call(2, "t")).in_session(&session)).await;
                    if answer.status == 200
                        && let Some(session) = answer.message().await.unwrap()["result"]["session"].as_u64()
                    {
                        return session;
                    }
                    tokio::time::sleep(MOMENT).await;
                }
            };
            assert_eq!(tokio::time::timeout(PATIENCE, answered).await.unwrap(), 1);
            continue;
        }
        assert_eq!(tokio::time::timeout(PATIENCE, listening.message()).await.unwrap(), None);
        let gone = async {
            while before.send(Request::post(&call(3, "t")).in_session(&session)).await.status != 404 {
                tokio::time::sleep(MOMENT).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
        assert_eq!(server.seen().iter().filter(|seen| seen.method == "GET").count(), 1, "it is asked once");
    }
}
