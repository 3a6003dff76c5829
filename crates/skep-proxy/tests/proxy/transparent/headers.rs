//! What reaches the server, and where.

use serde_json::json;
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::{Before, Server, reply};
use crate::http::{PATIENCE, Request, call, modern, request};

fn ok() -> super::server::Reply {
    reply(200, &[("content-type", "application/json"), ("connection", "x-hop"), ("x-hop", "1")], "{}")
}

#[tokio::test]
async fn trap_33_and_36_the_server_is_told_its_own_name_and_nothing_that_the_client_made_up() {
    let server = Server::start(|_| ok()).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let post = Request::post(&call(1, "a"))
        .header("X-Forwarded-For", "6.6.6.6")
        .header("Forwarded", "for=6.6.6.6")
        .header("X-Forwarded-Prefix", "/kept")
        .header("Authorization", "Bearer t");
    let response = before.send(post.clone()).await;
    assert_eq!((response.status, response.header("x-hop")), (200, None));
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.header("host"), Some(server.address.as_str()));
    assert_eq!((seen.header("x-forwarded-for"), seen.header("forwarded")), (Some("127.0.0.1"), None));
    assert_eq!(seen.header("x-forwarded-host"), Some(before.address.as_str()));
    assert_eq!((seen.header("x-forwarded-prefix"), seen.header("authorization")), (Some("/kept"), Some("Bearer t")));

    let before = Before::remote(Dialect::Streamable, &format!("http://{}/v1/mcp?key=a,b", server.address)).await;
    assert_eq!(before.send(post).await.status, 200);
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.target, "/v1/mcp?key=a,b");
    assert_eq!((seen.header("x-forwarded-host"), seen.header("x-forwarded-proto")), (None, Some("http")));
}

#[tokio::test]
async fn trap_35_the_query_of_a_remote_server_comes_once_and_first() {
    let server = Server::start(|_| ok()).await;
    let before = Before::remote(Dialect::Streamable, &format!("http://{}/mcp?a=1,2", server.address)).await;
    let post =
        Request::new("POST", "/x?b=%2C").header("Content-Type", "application/json").body(call(1, "a").to_string());
    assert_eq!(before.send(post).await.status, 200);
    assert_eq!(server.seen().pop().unwrap().target, "/mcp?a=1,2&b=%2C");
}

#[tokio::test]
async fn trap_34_redirects_are_followed_within_the_same_server() {
    let server = Server::start(|seen| match seen.target.as_str() {
        "/mcp" => reply(308, &[("location", "mcp/")], ""),
        "/mcp/" => ok(),
        "/loop" => reply(307, &[("location", "/loop")], ""),
        "/away" => reply(307, &[("location", "http://evil.example/mcp")], ""),
        "/other" => reply(303, &[("location", "/mcp/")], ""),
        _ => reply(404, &[], ""),
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    let post = |path: &str| {
        let body = call(1, "a").to_string();
        before.send(Request::new("POST", path).header("Content-Type", "application/json").body(body))
    };
    assert_eq!(post("/mcp").await.status, 200);
    let seen = server.seen().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.json()), ("POST", call(1, "a")));
    let away = post("/away").await;
    assert_eq!((away.status, away.header("location")), (307, Some("http://evil.example/mcp")));
    assert_eq!(post("/other").await.status, 303);
    server.seen();
    assert_eq!(post("/loop").await.status, 307);
    assert_eq!(server.seen().len(), 11);
}

#[tokio::test]
async fn what_is_no_message_or_disagrees_with_its_headers_never_reaches_the_server() {
    let server = Server::start(|seen| {
        if seen.json()["method"] != "server/discover" {
            return ok();
        }
        let result = json!({"supportedVersions": ["2026-07-28"]});
        reply(
            200,
            &[("content-type", "application/json")],
            json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result}).to_string(),
        )
    })
    .await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    let raw = |body: &str| Request::post(&json!(null)).body(body.to_owned());
    for (request, status, code) in [
        (raw("{"), 400, -32700),
        (raw(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":1,"name":2}}"#), 400, -32600),
        (raw("\u{a0}[]"), 400, -32700),
        (raw("[]").header("MCP-Protocol-Version", "2025-11-25"), 400, -32600),
        (raw(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#).header("MCP-Protocol-Version", "2025-11-25"), 400, -32600),
        (
            raw(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#)
                .instead("Content-Type", "text/plain")
                .header("MCP-Protocol-Version", "v9"),
            400,
            -32022,
        ),
        (modern(1, "tools/call", json!({"name": "a"})).instead("Mcp-Name", "b"), 400, -32020),
        (modern(1, "ping", json!({})), 404, -32601),
        (Request::post(&request(1, "server/discover", &json!({}))), 400, -32602),
        (Request::post(&call(1, "a")).in_session("unknown"), 404, -32001),
    ] {
        let mut response = before.send(request.clone()).await;
        assert_eq!(response.status, status, "{request:?}");
        assert_eq!(response.json().await["error"]["code"], code, "{request:?}");
    }
    for method in ["GET", "HEAD", "DELETE"] {
        let refused = before.send(Request::new(method, "/mcp").header("MCP-Protocol-Version", "2026-07-28")).await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, OPTIONS")));
    }
    for path in ["/metrics", "/.well-known/x"] {
        before.send(Request::new("GET", path)).await;
    }
    assert_eq!(server.seen().len(), 0);
    before.send(Request::new("GET", "/health").header("Authorization", "Bearer t")).await;
    let seen = server.seen().pop().unwrap();
    assert_eq!((seen.target.as_str(), seen.header("authorization")), ("/", None), "it is asked in our own words");
    assert_eq!(before.send(modern(1, "tools/call", json!({"name": "a"})).in_session("unknown")).await.status, 200);
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "a good request is made once, after the server said what it speaks");
    assert_eq!(seen[0].json()["method"], "server/discover");
    assert_eq!(seen[1].header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_server_without_sessions_is_for_posts_only() {
    let server = Server::start(|_| ok()).await;
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap().stateless();
    let before = Before::with(transparent).await;
    assert_eq!(before.send(Request::listen("x")).await.status, 405);
    assert_eq!(before.send(Request::post(&call(1, "a"))).await.status, 200);
}

#[tokio::test]
async fn trap_38_paths_of_the_proxy_itself_never_reach_the_server() {
    let server = Server::start(|_| ok()).await;
    let before = Before::remote(Dialect::Streamable, &format!("http://{}", server.address)).await;
    server.seen();
    for (path, status) in [
        ("/health", 200),
        ("/metrics", 404),
        ("/.well-known", 404),
        ("/.well-known/oauth-protected-resource/mcp", 404),
        ("/.well-known/openid-configuration", 404),
    ] {
        assert_eq!(before.send(Request::new("GET", path)).await.status, status, "{path}");
    }
    assert_eq!(server.seen().len(), 0);
    for path in ["/mcp", "/healthy", "/metrics/x", "/.well-knownx"] {
        assert_eq!(before.send(Request::new("GET", path)).await.status, 200, "{path}");
        assert_eq!(server.seen().pop().unwrap().target, path);
    }
}

#[tokio::test]
async fn trap_39_a_verb_that_the_stateless_revision_lacks_is_refused_before_anything_is_read() {
    let server = Server::start(|_| ok()).await;
    let before = Before::local(Dialect::Streamable, &server.address).await;
    server.seen();
    for verb in ["GET", "HEAD", "DELETE"] {
        let mut stream = tokio::net::TcpStream::connect(&before.address).await.unwrap();
        // The body is promised and never sent.
        let head = format!(
            "{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 2026-07-28\r\nContent-Length: 1000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 405", "{verb}");
    }
    assert_eq!(server.seen().len(), 0);
}
