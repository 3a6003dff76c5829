//! Before a server that speaks HTTP+SSE, the address that a stream announces is for whoever opened the stream.

use skep_conformance::redis::RedisServer;
use skep_proxy::middleware::{Chain, Middleware};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, SessionStore};
use tokio::sync::mpsc;

use super::sessions::Users;
use crate::http::{Request, call};
use crate::redis::store;
use crate::transparent::server::{Before, Reply, Seen, Server, reply};
use crate::transparent::streams::stream;

/// Whatever the address calls the session.
const ANNOUNCED: [&str; 2] = ["/messages?sessionId=4f1c", "/messages?session_id=4f1c"];

/// A server whose streams stay open, and announce this.
fn announcing(address: &'static str) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    move |seen| {
        if seen.method != "GET" {
            return reply(202, &[], "");
        }
        let (sender, parts) = mpsc::unbounded_channel();
        for part in ["event: endpoint\ndata: ", address, "\n\n"] {
            sender.send(part).unwrap();
        }
        tokio::spawn(async move { sender.closed().await });
        stream(&[("content-type", "text/event-stream")], parts)
    }
}

/// A proxy before it that wants to know who calls.
async fn proxy(server: &Server, users: &Users, store: SessionStore) -> Before {
    let target = Target::local(Dialect::Sse, &format!("http://{}", server.address)).unwrap();
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap().with_store(store);
    let middleware = Middleware::default();
    let before = Before::unready(Proxy::transparent(transparent).with_middleware(middleware.clone())).await;
    before.await_ready().await;
    middleware.replace(Chain::new(users.steps()));
    server.seen();
    before
}

async fn status(before: &Before, users: &Users, user: &str, address: &str) -> u16 {
    let post = Request::new("POST", address).header("Content-Type", "application/json");
    before.send(users.as_user(user, post.body(call(7, "x").to_string()))).await.status
}

fn open() -> Request {
    Request::new("GET", "/sse").header("Accept", "text/event-stream")
}

#[tokio::test]
async fn the_address_that_a_server_announces_is_of_no_use_to_others() {
    let users = Users::new().await;
    for announced in ANNOUNCED {
        let server = Server::start(announcing(announced)).await;
        let before = proxy(&server, &users, SessionStore::memory()).await;
        let mut streamed = before.send(users.as_user("ann", open())).await;
        assert!(streamed.event().await.unwrap().contains(announced));
        server.seen();
        let (more, escaped) = (format!("{announced}&x=1"), announced.replace('4', "%34"));
        for address in [announced, &more, &escaped, "/messages?sessionId=nobody", "/messages"] {
            assert_eq!(status(&before, &users, "bob", address).await, 404, "{address}");
        }
        assert!(server.seen().is_empty());
        assert_eq!(status(&before, &users, "ann", announced).await, 202);
    }
}

#[tokio::test]
async fn an_address_that_a_server_announces_to_everybody_is_everybodys() {
    let users = Users::new().await;
    let server = Server::start(announcing("/messages")).await;
    let before = proxy(&server, &users, SessionStore::memory()).await;
    let mut streams = Vec::new();
    for user in ["ann", "bob", "bob"] {
        let mut streamed = before.send(users.as_user(user, open())).await;
        assert!(streamed.event().await.is_some());
        streams.push(streamed);
    }
    for user in ["ann", "bob"] {
        assert_eq!(status(&before, &users, user, "/messages").await, 202, "{user}");
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_hold_the_stream_knows_whose_it_is() {
    let Some(redis) = RedisServer::start("a_proxy_that_does_not_hold_the_stream_knows_whose_it_is") else { return };
    let users = Users::new().await;
    let server = Server::start(announcing(ANNOUNCED[0])).await;
    let (first, second) =
        (proxy(&server, &users, store(&redis).await).await, proxy(&server, &users, store(&redis).await).await);
    let mut streamed = first.send(users.as_user("ann", open())).await;
    assert!(streamed.event().await.is_some());
    for address in [ANNOUNCED[0], "/messages?sessionId=4f1c&sessionId=4f1d", "/messages?sessionId=%34f1c"] {
        assert_eq!(status(&second, &users, "bob", address).await, 404, "{address}");
    }
    assert_eq!(status(&second, &users, "ann", "/messages?sessionId=4f1c&sessionId=4f1d").await, 404);
    assert_eq!(status(&second, &users, "ann", ANNOUNCED[0]).await, 202);
}
