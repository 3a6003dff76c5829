//! Web pages that were named may talk to the proxy, and no others.

use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, SessionStore};

use crate::bridge::server::{Setup, limits};
use crate::http::{Request, call, initialize};
use crate::transparent::server::{Before, Server, with_sessions};

const PAGE: &str = "https://hive.example";

fn preflight(origin: &str) -> Request {
    Request::new("OPTIONS", "/mcp")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type, mcp-protocol-version")
}

#[tokio::test]
async fn a_page_that_was_named_may_use_the_bridge_and_read_its_session() {
    let named = |bridge| Proxy::streamable(bridge).with_origins(vec![PAGE.to_owned()]);
    let mut setup = Setup::new(limits(), SessionStore::memory(), named).await;
    let told = setup.send(preflight(PAGE)).await;
    assert_eq!((told.status, told.header("access-control-allow-origin")), (204, Some(PAGE)));
    assert!(told.header("access-control-allow-methods").unwrap().contains("DELETE"));
    assert!(told.header("access-control-allow-headers").unwrap().contains("mcp-session-id"));
    let (_server, _) = setup.begin().await;
    let answer = setup.send(Request::post(&initialize("2025-11-25")).header("Origin", PAGE)).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(PAGE)));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    assert_eq!(answer.header("vary"), Some("origin"));
    // Errors are for the page to read, too.
    let refused = setup.send(Request::post(&call(1, "a")).in_session("nobody").header("Origin", PAGE)).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (404, Some(PAGE)));

    for origin in ["https://evil.example", "null", "https://hive.example.evil.example", "http://hive.example"] {
        let refused = setup.send(preflight(origin)).await;
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{origin}");
    }
    // A question of no page is none, and the bridge has nothing else to say about this verb.
    assert_eq!(setup.send(Request::new("OPTIONS", "/mcp")).await.status, 405);
    let plain = setup.send(Request::post(&initialize("2025-11-25"))).await;
    assert_eq!((plain.status, plain.header("access-control-allow-origin")), (200, None));
}

#[tokio::test]
async fn the_server_is_not_asked_what_pages_may_do() {
    let server = Server::start(with_sessions("a")).await;
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let proxy = Proxy::transparent(transparent).with_origins(vec![PAGE.to_owned()]);
    let before = Before::unready(proxy).await;
    let told = before.send(preflight(PAGE)).await;
    assert_eq!((told.status, told.header("access-control-max-age")), (204, Some("86400")));
    assert_eq!(before.send(preflight("https://evil.example")).await.status, 403);
    assert_eq!(server.seen().len(), 0);
}
