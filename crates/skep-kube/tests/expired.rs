//! What the server says when it is asked for a past that it has forgotten, and to clients who read too slowly.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Extension;
use serde_json::{Value, json};
use skep_kube::auth::User;
use skep_kube::auth::identity::Certificate;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::auth::user::MASTERS_GROUP;
use skep_kube::server::Server;
use skep_kube::store::{HistoryLimits, Options, Store};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Long enough for a slow machine.
const LONG: Duration = Duration::from_mins(1);

async fn server_on(store: &Store) -> Server {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(store.clone(), tokens, "127.0.0.1:0").await.unwrap()
}

/// A server that remembers the last so many changes.
async fn forgetful(events: usize) -> Server {
    let history = HistoryLimits { events, ..HistoryLimits::default() };
    server_on(&Store::open_with(None, Options { history, ..Options::default() }).unwrap()).await
}

/// The code and the text of an answer.
async fn ask(server: &Server, method: &str, path: &str, body: Value) -> (u16, String) {
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = server.client().send(request.body(body.into()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = tokio::time::timeout(LONG, http_body_util::BodyExt::collect(answer.into_body())).await.unwrap();
    (code, String::from_utf8(body.unwrap().to_bytes().to_vec()).unwrap())
}

async fn get(server: &Server, path: &str) -> (u16, Value) {
    let (code, text) = ask(server, "GET", path, Value::Null).await;
    (code, serde_json::from_str(&text).unwrap())
}

async fn create(server: &Server, name: &str) {
    let (code, text) = ask(server, "POST", SECRETS, json!({ "metadata": { "name": name } })).await;
    assert_eq!(code, 201, "{text}");
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn is_expired(status: &Value) -> bool {
    status["kind"] == "Status" && status["code"] == 410 && status["reason"] == "Expired"
}

/// The words are those of a real server whose etcd was compacted.
#[tokio::test]
async fn lists_of_a_forgotten_past_are_refused_and_can_be_gone_on_with() {
    let server = forgetful(5).await;
    for name in ["a", "b", "c", "d"] {
        create(&server, name).await;
    }
    let (_, first) = get(&server, &format!("{SECRETS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    let (token, version) = (first["metadata"]["continue"].as_str().unwrap(), &first["metadata"]["resourceVersion"]);
    for number in 0..6 {
        create(&server, &format!("later-{number}")).await;
    }

    let version = version.as_str().unwrap();
    for query in
        [format!("resourceVersionMatch=Exact&resourceVersion={version}"), format!("resourceVersion={version}&limit=1")]
    {
        let (code, status) = get(&server, &format!("{SECRETS}?{query}")).await;
        assert!(code == 410 && is_expired(&status), "{query}: {status}");
        assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
        assert_eq!(status["metadata"], json!({}));
    }

    let (code, status) = get(&server, &format!("{SECRETS}?limit=3&continue={token}")).await;
    assert!(code == 410 && is_expired(&status), "{status}");
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
        list without the continue parameter, or use the continue token in this response to retrieve the remainder of \
        the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
        modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    assert_eq!(status["message"], message);
    let token = status["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = get(&server, &format!("{SECRETS}?limit=3&continue={token}")).await;
    assert_eq!((code, names(&rest)), (200, vec!["c", "d", "later-0"]));
    let token = rest["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&server, &format!("{SECRETS}?continue={token}")).await;
    assert_eq!(names(&rest), ["later-1", "later-2", "later-3", "later-4", "later-5"]);
}

#[tokio::test]
async fn watches_from_a_forgotten_past_end_at_once() {
    let server = forgetful(5).await;
    let (_, list) = get(&server, SECRETS).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    for number in 0..6 {
        create(&server, &format!("later-{number}")).await;
    }
    let (code, event) = get(&server, &format!("{SECRETS}?watch=1&resourceVersion={version}")).await;
    assert!(code == 200 && event["type"] == "ERROR" && is_expired(&event["object"]), "{event}");
    let message = event["object"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("too old resource version: {version} (")), "{message}");
}

/// The past is not on the disk: a client that was away while the server was begins anew.
#[tokio::test]
async fn the_past_does_not_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Some(folder.path())).unwrap();
    let server = server_on(&store).await;
    for name in ["a", "b", "c"] {
        create(&server, name).await;
    }
    let (_, first) = get(&server, &format!("{SECRETS}?limit=1")).await;
    let (token, version) = (first["metadata"]["continue"].as_str().unwrap(), &first["metadata"]["resourceVersion"]);
    create(&server, "d").await;
    store.close().await;
    drop(server);

    let server = server_on(&Store::open(Some(folder.path())).unwrap()).await;
    let version = version.as_str().unwrap();
    let (_, event) = get(&server, &format!("{SECRETS}?watch=1&resourceVersion={version}")).await;
    assert!(event["type"] == "ERROR" && is_expired(&event["object"]), "{event}");
    let (code, status) = get(&server, &format!("{SECRETS}?limit=1&continue={token}")).await;
    assert!(code == 410 && is_expired(&status), "{status}");
    let token = status["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&server, &format!("{SECRETS}?continue={token}")).await;
    assert_eq!(names(&rest), ["b", "c", "d"]);
}

/// Serves the API to administrators without asking who they are.
async fn listen(server: &Server) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let admin = Certificate::Good(User::new("admin", &[MASTERS_GROUP]));
    let router = server.router().layer(Extension(admin));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, tasks)
}

/// A client that takes a watch and does not read holds up nobody and gets no more than the connection holds; then it is
/// told, and let go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_not_read_is_dropped() {
    // More than the buffers of a connection hold, and far more than the server remembers.
    const WRITES: usize = 120;
    let server = forgetful(10).await;
    let (address, _tasks) = listen(&server).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {SECRETS}?watch=1 HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    while !tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap().unwrap().is_empty() {}

    let filler = "x".repeat(256 * 1024);
    for number in 0..WRITES {
        let secret = json!({ "metadata": { "name": format!("s{number}") }, "stringData": { "filler": filler } });
        let (code, text) = ask(&server, "POST", SECRETS, secret).await;
        assert_eq!(code, 201, "{text}");
    }
    let mut types = Vec::new();
    let mut last = Value::Null;
    while let Some(line) = tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap() {
        // Chunks, where there are any, have lines of their own.
        if let Ok(event @ Value::Object(_)) = serde_json::from_str(&line) {
            last = event;
            types.push(last["type"].as_str().unwrap().to_owned());
        }
    }
    assert!(types.len() < WRITES, "all {WRITES} events were kept for a client that did not read");
    assert!(last["type"] == "ERROR" && is_expired(&last["object"]), "{} events, then {}", types.len(), last["type"]);
}
