//! The chain itself.

use std::time::Duration;

use serde_json::json;
use skep_proxy::middleware::{Authentication, Chain, Oidc, OidcSettings, Step};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Guarded, names, rules, with_tools};
use crate::http::{PATIENCE, Request, call, request};
use crate::transparent::server::reply;

#[tokio::test]
async fn a_chain_is_replaced_while_requests_come() {
    let guarded = Guarded::new(Vec::new(), with_tools).await;
    let list = || Request::post(&request(1, "tools/list", &json!({})));
    assert_eq!(names(&guarded.send(list()).await.json().await), ["secret", "weigh_hive", "feed"]);
    guarded.middleware.replace(Chain::new(vec![Step::ToolLists(rules(&["feed"], &[]))]));
    assert_eq!(names(&guarded.send(list()).await.json().await), ["feed"]);
    guarded.middleware.replace(Chain::new(Vec::new()));
    assert_eq!(names(&guarded.send(list()).await.json().await).len(), 3);
}

#[tokio::test]
async fn trap_26_a_body_that_says_it_is_too_large_is_refused_before_anything_else() {
    let guarded = Guarded::new(vec![Step::Parse, Step::ToolCalls(rules(&["a"], &[]))], with_tools).await;
    let large = Request::post(&call(1, "a")).body(vec![b' '; 9 << 20]);
    let mut refused = guarded.send(large).await;
    assert_eq!((refused.status, refused.text().await.as_str()), (413, "Request Entity Too Large\n"));
    assert!(guarded.server.seen().is_empty());
}

/// Sends a body slowly and reads nothing before it was sent, as many clients do. What the answer begins with.
async fn told(stream: &mut TcpStream, header: &str, bytes: usize) -> String {
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {bytes}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b' '; 256 << 10];
    for sent in (0..bytes).step_by(piece.len()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        stream.write_all(&piece[..piece.len().min(bytes - sent)]).await.unwrap();
    }
    let mut answer = [0; 4096];
    let length = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer[..length]).chars().take(12).collect()
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_reads_nothing_before_it_has_sent_everything() {
    let settings = OidcSettings {
        issuer: "https://login.example".to_owned(),
        audience: "hive".to_owned(),
        ..OidcSettings::default()
    };
    let oidc = Box::new(Oidc::new(&settings).unwrap());
    let guarded = Guarded::new(vec![Step::Authenticate(Authentication::Oidc(oidc))], with_tools).await;
    let mut stream = TcpStream::connect(&guarded.before.address).await.unwrap();
    // All of them on one connection, which is as good as before after each.
    for (header, bytes, status) in
        [("", 4 << 20, "401"), ("Origin: https://evil.example\r\n", 4 << 20, "403"), ("", (8 << 20) + 1, "413")]
    {
        assert_eq!(told(&mut stream, header, bytes).await, format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn what_nobody_wants_does_not_come_for_ever() {
    let guarded = Guarded::new(Vec::new(), with_tools).await;
    for bytes in [usize::MAX / 4, 64 << 20] {
        let mut stream = TcpStream::connect(&guarded.before.address).await.unwrap();
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {bytes}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece = vec![b' '; 1 << 20];
        let sending = async {
            while stream.write_all(&piece).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, sending).await.unwrap();
    }
}

#[tokio::test]
async fn trap_39_verbs_without_meaning_are_refused_before_the_chain() {
    let guarded = Guarded::new(vec![Step::ToolCalls(rules(&["a"], &[]))], with_tools).await;
    for verb in ["GET", "DELETE"] {
        let refused = guarded.send(Request::new(verb, "/mcp").header("MCP-Protocol-Version", "2026-07-28")).await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, OPTIONS")));
    }
    assert!(guarded.server.seen().is_empty());
}

#[tokio::test]
async fn a_body_reaches_the_server_as_it_came() {
    let steps = vec![
        Step::ToolLists(rules(&["feed"], &[])),
        Step::ToolCalls(rules(&["feed"], &[])),
        Step::Parse,
        Step::Recover,
    ];
    let guarded = Guarded::new(steps, with_tools).await;
    let text = r#" {"jsonrpc":"2.0" , "id":9007199254740993,"method":"tools\/call","params":{"name":"feed","x":1.0}}"#;
    let mut answer = guarded.send(Request::post(&json!({})).body(text)).await;
    assert!(answer.text().await.contains("9007199254740993"));
    assert_eq!(answer.status, 200);
    assert_eq!(guarded.server.seen()[0].body, text);
}

#[tokio::test]
async fn what_is_no_message_does_not_pass_a_chain_that_judges_messages() {
    let steps = || vec![Step::ToolCalls(rules(&["feed"], &[]))];
    let dialect = skep_proxy::transparent::Dialect::Sse;
    // Whoever reads this another way than we do may see the other name.
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"feed","name":"secret"}}"#;
    let guarded = Guarded::of(dialect, steps(), |_| reply(202, &[], "")).await;
    for (verb, kind) in
        [("POST", "application/json"), ("POST", "text/plain"), ("PUT", "application/json"), ("GET", "x")]
    {
        let refused = guarded.send(Request::new(verb, "/messages").header("Content-Type", kind).body(twice)).await;
        assert_eq!(refused.status, 400, "{verb} {kind}");
    }
    assert!(guarded.server.seen().is_empty());
}
