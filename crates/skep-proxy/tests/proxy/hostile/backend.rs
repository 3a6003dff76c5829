//! Servers that say what no server should.

use serde_json::json;
use skep_proxy::Limits;
use skep_proxy::transparent::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::bridge::server::{Setup, limits};
use crate::http::{PATIENCE, Request, call, initialize, modern};
use crate::transparent::server::Before;

#[tokio::test]
async fn lines_that_are_no_messages_do_not_disturb_those_that_are() {
    let mut setup = Setup::with_limits(Limits { line_bytes: 1 << 16, ..limits() }).await;
    let (mut server, session) = setup.begin().await;
    let mut stream = setup.send(Request::listen(&session)).await;
    let deep = "[".repeat(60_000);
    let lines: [&[u8]; 16] = [
        b"",
        b"\r",
        b"\0\0\0",
        b"\xff\xfe\xfd",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":",
        b"}{",
        b"Traceback (most recent call last):",
        b"\x1b[31merror\x1b[0m",
        b"{\"level\":\"info\",\"msg\":\"started\"}",
        b"{\"jsonrpc\":\"1.0\",\"method\":\"notifications/tools/list_changed\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":7}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":{}}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"result\":{}}",
        deep.as_bytes(),
    ];
    for line in lines {
        server.write_bytes(line).await;
        server.write_bytes(b"\n").await;
    }
    // One that is too long, in pieces, as it would come.
    for _ in 0..64 {
        server.write_bytes(&[b'x'; 1 << 14]).await;
    }
    server.write_bytes(b"\n").await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.write(&changed).await;
    assert_eq!(stream.message().await, Some(changed));
    let (mut answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain().in_session(&session)), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({"ok": true})).await;
        // Once is enough.
        server.answer(&message, &json!({"ok": false})).await;
    });
    assert_eq!(answer.json().await["result"], json!({"ok": true}));
}

/// A server that answers every connection with the same bytes.
async fn saying(bytes: &'static [u8]) -> String {
    answering(move |_| bytes).await
}

/// A server that answers the first request of every connection, and closes it.
async fn answering<A: AsRef<[u8]> + Send>(answer: impl Fn(&[u8]) -> A + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                if let Ok(read @ 1..) = stream.read(&mut asked).await {
                    let told = answer(&asked[..read]);
                    let _ = stream.write_all(told.as_ref()).await;
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn answers_that_are_none_are_told_as_such() {
    for bytes in [
        b"".as_slice(),
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBroken\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n",
        // A small answer that breaks off is noticed before the client hears of it.
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ] {
        let server = saying(bytes).await;
        let before = Before::local(Dialect::Streamable, &server).await;
        let response = before.send(Request::post(&call(1, "a"))).await;
        assert_eq!(response.status, 502, "{}", String::from_utf8_lossy(bytes));
    }
}

// 30 §3.2 has no body for it: whoever asked is told by its own id.
#[tokio::test]
async fn a_small_answer_that_breaks_off_is_told_to_whoever_asked() {
    let server = saying(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{").await;
    let before = Before::local(Dialect::Streamable, &server).await;
    for request in [call(7, "a"), initialize("2025-11-25")] {
        let id = request["id"].clone();
        let mut answer = before.send(Request::post(&request)).await;
        assert_eq!((answer.status, answer.header("content-type")), (502, Some("application/json")));
        let told = answer.json().await;
        assert_eq!((&told["id"], &told["error"]["code"]), (&id, &json!(-32603)), "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains("broke off"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_client() {
    for bytes in [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{".as_slice(),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:",
    ] {
        let server = saying(bytes).await;
        let before = Before::local(Dialect::Streamable, &server).await;
        let mut stream = tokio::net::TcpStream::connect(&before.address).await.unwrap();
        let body = call(1, "a").to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 200") || answer.is_empty(), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "what is cut off must not look complete: {answer}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_is_told_to_whoever_stands_alone() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    for (kind, ending) in [
        ("text/event-stream", "0\r\n\r\n"),
        ("text/event-stream", ""),
        ("application/json", "0\r\n\r\n"),
        ("application/json", ""),
    ] {
        let is_json = kind == "application/json";
        let said = if is_json { format!("{note}\n") } else { format!("event: message\ndata: {note}\n\n") };
        // Only a server whose requests stand alone has such an error.
        let discovered = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32021,"message":"no"}}"#;
        let answer = move |asked: &[u8]| {
            if asked.windows(15).any(|part| part == b"server/discover") {
                let head = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n";
                return format!("{head}Content-Length: {}\r\n\r\n{discovered}", discovered.len());
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
            format!("{head}{:x}\r\n{said}\r\n{ending}", said.len())
        };
        let server = answering(answer).await;
        let before = Before::local(Dialect::Streamable, &server).await;
        let mut stream = before.send(modern(7, "tools/call", json!({"name": "a"}))).await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/message");
        let told = stream.message().await.unwrap();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(7), &json!(-32603)), "{kind} {ending:?}");
        assert_eq!(stream.message().await, None);
    }
}
