//! Bytes that are no request, or one that means different things to different readers.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Proxies;
use crate::http::{PATIENCE, call};

/// A head that would be good, but for what follows.
const GOOD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// What comes back for it: the status, or nothing but the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Status(u16),
    End,
}
use Refusal::{End, Status};

fn good(rest: &str) -> Vec<u8> {
    format!("{GOOD}{rest}").into_bytes()
}

fn requests() -> Vec<(Vec<u8>, Refusal)> {
    let long = "x".repeat(300 << 10);
    let many = "X: 1\r\n".repeat(200);
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        // No HTTP.
        (text("hello\r\n\r\n"), Status(400)),
        (text("\0\0\0\0\r\n\r\n"), Status(400)),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), Status(400)),
        (text("GET\r\n\r\n"), Status(400)),
        (text("GET /mcp\r\n\r\n"), Status(400)),
        (text("GET /mcp HTTP/9.9\r\n\r\n"), Status(400)),
        (text("GET /mcp http/1.1\r\n\r\n"), Status(400)),
        (text("G@T /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"), Status(400)),
        (text("GET /m cp HTTP/1.1\r\nHost: localhost\r\n\r\n"), Status(400)),
        (text("GET /mcp\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n"), Status(400)),
        (text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame"), End),
        // Heads that cannot be read in one way only.
        (good("Broken\r\n\r\n"), Status(400)),
        (good(": no name\r\n\r\n"), Status(400)),
        (good("Content-Length : 2\r\n\r\n{}"), Status(400)),
        (good("X: a\r\n folded\r\n\r\n"), Status(400)),
        (good("X: a\rY: b\r\n\r\n"), Status(400)),
        (good("X: a\0b\r\n\r\n"), Status(400)),
        (good("X\0: a\r\n\r\n"), Status(400)),
        (good("X Y: a\r\n\r\n"), Status(400)),
        (good(&format!("X: {long}\r\n\r\n")), Status(431)),
        (good(&format!("{many}\r\n")), Status(431)),
        (text(&format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n")), Status(431)),
        // Lengths that somebody could read otherwise.
        (good("Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), Status(400)),
        (good("Content-Length: 2, 3\r\n\r\n{}"), Status(400)),
        (good("Content-Length: +2\r\n\r\n{}"), Status(400)),
        (good("Content-Length: -2\r\n\r\n{}"), Status(400)),
        (good("Content-Length: 0x2\r\n\r\n{}"), Status(400)),
        (good("Content-Length: two\r\n\r\n{}"), Status(400)),
        (good("Content-Length: 99999999999999999999999\r\n\r\n{}"), Status(400)),
        (good("Content-Length: 18446744073709551615\r\n\r\n{}"), Status(431)),
        (good("Content-Length: 8388609\r\n\r\n"), Status(413)),
        (good("Content-Length: 8388609\r\nExpect: 100-continue\r\n\r\n"), Status(413)),
        (good("Transfer-Encoding: identity\r\n\r\n{}"), Status(400)),
        (good("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), Status(400)),
        (good("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), Status(400)),
        (good("Transfer-Encoding: chunked\r\n\r\nz\r\n{}\r\n0\r\n\r\n"), Status(400)),
        (good("Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n"), Status(400)),
        (good("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n"), Status(400)),
        (good("Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n"), Status(400)),
        (good(&format!("Transfer-Encoding: chunked\r\n\r\n2;{long}\r\n{{}}\r\n0\r\n\r\n")), Status(400)),
        (good("Transfer-Encoding: chunked\r\n\r\n2\r\n{"), Status(400)),
        (good("Content-Length: 50\r\n\r\n{}"), Status(400)),
        // Names of others.
        (text("POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (text("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (text("POST /mcp HTTP/1.1\r\nHost: localhost, evil.example\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (text("POST /mcp HTTP/1.1\r\nHost: localhost@evil.example\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (text("POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (text("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n"), Status(403)),
        (good("Origin: null\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (good("Origin: http://a, http://b\r\nContent-Length: 0\r\n\r\n"), Status(403)),
        (good("Origin: \r\nContent-Length: 0\r\n\r\n"), Status(403)),
    ]
}

/// Sessions that are none, or two, and revisions likewise.
fn sessions() -> Vec<(Vec<u8>, Refusal)> {
    vec![
        (
            good(&format!(
                "Mcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n{}",
                "x".repeat(60 << 10),
                BODY.len(),
                BODY
            )),
            Status(404),
        ),
        (good(&format!("Mcp-Session-Id: \r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len())), Status(404)),
        (
            good(&format!("Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len())),
            Status(400),
        ),
        (
            good(&format!(
                "MCP-Protocol-Version: 2025-11-25\r\nMCP-Protocol-Version: 2026-07-28\r\nContent-Length: {}\r\n\r\n{BODY}",
                BODY.len()
            )),
            Status(400),
        ),
        (good(&format!("MCP-Protocol-Version: \u{fc}\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len())), Status(400)),
    ]
}

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;

/// What a proxy says to some bytes until the connection ends, after nothing more is sent.
async fn say(address: &str, bytes: &[u8]) -> Refusal {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // It may have had enough before everything is sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    match text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 ")) {
        Some(rest) => Status(rest[..3].parse().unwrap()),
        None => End,
    }
}

/// The same to another endpoint.
fn to(path: &str, bytes: &[u8]) -> Vec<u8> {
    let at = bytes.windows(6).position(|part| part == b" /mcp ");
    at.map_or_else(|| bytes.to_vec(), |at| [&bytes[..=at], path.as_bytes(), &bytes[at + 5..]].concat())
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_reaches_no_server() {
    let proxies = Proxies::start().await;
    let mut wrong = Vec::new();
    let (everywhere, revisions) = (requests(), sessions());
    let everywhere = everywhere.iter().map(|case| (case, proxies.endpoints().to_vec()));
    let revisions = revisions.iter().map(|case| (case, proxies.endpoints()[..2].to_vec()));
    for ((bytes, expected), endpoints) in everywhere.chain(revisions) {
        for (address, path) in endpoints {
            let found = say(address, &to(path, bytes)).await;
            if found != *expected {
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
                wrong.push(format!("{expected:?}, not {found:?}, at {path}: {shown:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    proxies.are_unharmed().await;
}

#[tokio::test]
async fn a_request_hidden_in_the_body_of_another_reaches_no_server() {
    let proxies = Proxies::start().await;
    let hidden = format!("{GOOD}Content-Length: {}\r\n\r\n{}", BODY.len(), BODY.replace("tools/call", "hidden"));
    let smuggled = good(&format!("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"));
    for (address, path) in proxies.endpoints() {
        assert_eq!(say(address, &to(path, &smuggled)).await, Status(400), "{path}");
    }
    proxies.are_unharmed().await;
}

#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_one() {
    let mut proxies = Proxies::start().await;
    let body = call(1, "slow").to_string();
    let bytes = good(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(&proxies.bridge.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in bytes {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let message = proxies.process.expect("tools/call").await;
    proxies.process.answer(&message, &serde_json::json!({"whole": true})).await;
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"whole\":true"), "{answer}");
    proxies.are_unharmed().await;
}
