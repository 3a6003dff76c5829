//! Credentials that end while somebody listens.

use std::sync::{Arc, Mutex};

use serde_json::json;
use skep_proxy::transparent::Dialect;

use super::again::{CHANGED, Parts, UPDATED, end, last, note, told_by_the_test};
use crate::http::{PATIENCE, Request, Response, initialize};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

const OLD: &str = "Bearer old";
const NEW: &str = "Bearer new";

/// A server that takes one credential at a time, and tells changes on streams that the test writes.
async fn taking(credential: &Arc<Mutex<&'static str>>) -> (Server, Parts) {
    let (parts, answer) = told_by_the_test();
    let taken = Arc::clone(credential);
    let answer = move |seen: &Seen| -> Reply {
        if seen.method != "OPTIONS" && seen.header("authorization") != Some(*taken.lock().unwrap()) {
            return reply(401, &[("www-authenticate", "Bearer")], "");
        }
        answer(seen)
    };
    (Server::start(answer).await, parts)
}

async fn next(stream: &mut Response) -> Option<String> {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await.unwrap()?;
    Some(message["method"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_stream_of_a_session_ends_when_its_credentials_have_and_its_client_hears_on_with_others() {
    let credential = Arc::new(Mutex::new(OLD));
    let (server, parts) = taking(&credential).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let opened = before.send(Request::post(&initialize("2025-11-25")).header("Authorization", OLD)).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let listen = async |token: &str| before.send(Request::listen(&session).header("Authorization", token)).await;
    let mut stream = listen(OLD).await;
    last(&parts).send(note(CHANGED, &json!({}))).unwrap();
    assert_eq!(next(&mut stream).await.as_deref(), Some(CHANGED));
    server.seen();
    *credential.lock().unwrap() = NEW;
    end(&parts);
    assert_eq!(next(&mut stream).await, None, "its stream is over, and nobody listens for it in vain");
    let mut stream = listen(NEW).await;
    // What was told meanwhile nobody knows.
    assert_eq!(
        (next(&mut stream).await.as_deref(), next(&mut stream).await.as_deref()),
        (Some(CHANGED), Some(UPDATED))
    );
    last(&parts).send(note(UPDATED, &json!({"uri": "hive://3"}))).unwrap();
    assert_eq!(next(&mut stream).await.as_deref(), Some(UPDATED));
    let seen = server.seen();
    let asked = seen.iter().filter(|seen| seen.json()["method"] == "subscriptions/listen");
    let shown: Vec<_> = asked.map(|seen| seen.header("authorization").unwrap()).collect();
    assert_eq!(shown, [OLD, NEW], "it is asked once as it was before");
}
