//! Bodies that are no messages.

use serde_json::Value;

use super::Proxies;
use crate::http::Request;

/// Not JSON.
const UNREADABLE: i64 = -32700;
/// JSON, and no message.
const NO_MESSAGE: i64 = -32600;

/// What is no JSON, whatever it is close to.
const NO_JSON: [&[u8]; 39] = [
    b"",
    b" ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"{]",
    b"\"",
    b"nonsense",
    b"{\"jsonrpc\"",
    b"{\"jsonrpc\":",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"} x",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"b\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\0",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",}",
    b"{\"jsonrpc\":\"2.0\",,\"id\":1,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\" \"id\":1,\"method\":\"a\"}",
    b"{'jsonrpc':'2.0','id':1,'method':'a'}",
    b"{jsonrpc:\"2.0\",id:1,method:\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,/* x */\"method\":\"a\"}",
    b"// x\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":+1,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":.5,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":0x1,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"a\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":Infinity}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\x41\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u12\"}",
    b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}",
    b"\xff\xfe{\0}\0",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xe2\x82\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"\x01\",\"method\":\"a\"}",
    b"\xc2\xa0[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}]",
];

/// What is JSON, and nothing that may be sent.
const NO_MESSAGES: [&str; 32] = [
    "null",
    "true",
    "7",
    "\"text\"",
    "{}",
    "[]",
    r#"{"id":1,"method":"a"}"#,
    r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#,
    r#"{"jsonrpc":"2","id":1,"method":"a"}"#,
    r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
    r#"{"jsonrpc":null,"id":1,"method":"a"}"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":1}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":["a"]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","params":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","params":true}"#,
    r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"allowed","name":"denied"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"allowed","\u006eame":"denied"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
    r#"{"jsonrpc":"2.0","result":{}}"#,
];

#[tokio::test]
async fn what_is_no_message_is_told_and_reaches_no_server() {
    let proxies = Proxies::start().await;
    let deep = |open: &str, close: &str| {
        let nested = format!("{}1{}", open.repeat(50_000), close.repeat(50_000));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{nested}}}}}"#).into_bytes()
    };
    let many = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#; 51].join(","));
    let unreadable = NO_JSON.iter().map(|body| body.to_vec()).chain([deep("[", "]"), deep("{\"a\":", "}")]);
    let no_messages = NO_MESSAGES.iter().map(|body| body.as_bytes().to_vec()).chain([many.into_bytes()]);
    let cases = unreadable.map(|body| (body, UNREADABLE)).chain(no_messages.map(|body| (body, NO_MESSAGE)));
    for (body, expected) in cases {
        for (address, path) in proxies.endpoints() {
            let shown = String::from_utf8_lossy(&body[..body.len().min(100)]).into_owned();
            // The bridge refuses whatever does not call itself JSON before it looks at it; the others look.
            let kind = if address == proxies.events.address { "text/plain" } else { "application/json" };
            let post = Request::post(&Value::Null).at(path).instead("Content-Type", kind).body(body.clone());
            let mut response = post.send(address).await;
            let status = response.status;
            let answer = response.text().await;
            assert!(!answer.contains("\"id\":null") && answer.len() < 1000, "{shown}: {answer}");
            let code = serde_json::from_str::<Value>(&answer).unwrap_or_default()["error"]["code"].as_i64();
            // One of them says it in words.
            let is_text = answer.starts_with("Error parsing JSON-RPC message: ");
            assert_eq!(is_text, path != "/mcp", "{shown}: {answer}");
            assert_eq!((status, code), (400, (!is_text).then_some(expected)), "{shown}: {answer}");
        }
    }
    proxies.are_unharmed().await;
}

#[tokio::test]
async fn trap_24_a_batch_is_refused_whatever_it_calls_itself_and_whatever_stands_before_it() {
    const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#;
    let proxies = Proxies::start().await;
    let kinds = ["application/json", "Application/JSON; charset=x", "text/plain", "application/octet-stream"];
    let mut taken = 0;
    for kind in kinds {
        for space in ["", " ", "\t\r\n", "\u{a0}", "\u{2003}", "\u{feff}", "\u{b}"] {
            for batch in ["[", "[]", BATCH] {
                for (address, path) in proxies.endpoints() {
                    for version in [Some("2025-11-25"), None] {
                        let post = Request::post(&Value::Null).at(path).instead("Content-Type", kind);
                        let post =
                            version.iter().fold(post, |post, version| post.header("MCP-Protocol-Version", version));
                        let status = post.body(format!("{space}{batch}")).send(address).await.status;
                        // The revision that has batches has no such header, and before a server without sessions no session.
                        let is_its_revision = version.is_none() && address == proxies.transparent.address;
                        let is_json = kind.to_ascii_lowercase().starts_with("application/json") && space.is_ascii();
                        if is_its_revision && is_json && batch == BATCH && space != "\u{b}" {
                            assert_eq!(status, 200, "{kind}, {space:?}");
                            taken += 1;
                            continue;
                        }
                        assert!(matches!(status, 400 | 415), "{kind}, {space:?}{batch}, {version:?}: {status}");
                    }
                }
            }
        }
    }
    // Whatever was served was one message each.
    let seen = proxies.server.seen();
    assert!(seen.len() == taken && seen.iter().all(|seen| seen.json()["method"] == "a"));
    proxies.are_unharmed().await;
}

#[tokio::test]
async fn trap_31_errors_have_the_id_that_was_asked_with_or_none() {
    let proxies = Proxies::start().await;
    for address in proxies.addresses() {
        let told = async |body: &str| {
            let post = Request::post(&Value::Null).in_session("nobody").body(body.to_owned());
            let mut response = post.send(address).await;
            assert_eq!(response.status, 404, "{body}");
            response.text().await
        };
        for id in ["0", "-1", "\"\"", "\"0\"", "12345678901234567890"] {
            let error = r#""error":{"code":-32001,"message":"Session not found"}"#;
            let answer = told(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)).await;
            assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},{error}}}"#));
        }
        let answer = told(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).await;
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","error""#), "{answer}");
    }
    proxies.are_unharmed().await;
}
