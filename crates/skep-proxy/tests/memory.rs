//! What clients and servers that mean no good can make a proxy hold: bytes that are asked for, counted, so that neither the
//! machine nor its load has a say in it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "proxy/http.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod http;
#[path = "proxy/transparent/server.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod http_server;
#[path = "proxy/bridge/server.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod server;

use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use serde_json::{Value, json};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Budget, Forwarded, Limits};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::http::{PATIENCE, Request, call, modern, request};
use crate::http_server::{Before, Reply, Server as HttpServer, with_sessions};
use crate::server::{Server, Setup, limits};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MIB: usize = 1 << 20;
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Bytes that are held now.
fn held() -> usize {
    let stats = ALLOCATOR.stats();
    let reallocated = stats.bytes_reallocated;
    let allocated = stats.bytes_allocated - stats.bytes_deallocated;
    allocated.checked_add_signed(reallocated.min(0)).unwrap_or(allocated)
}

/// All in one test, because they share what is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_can_make_a_proxy_hold_more_than_its_limits() {
    // Whatever is made once is made.
    flood(1).await;
    lines(1).await;
    bodies(1).await;
    nested(1).await;
    left(1).await;
    watched(1).await;
    beside(1).await;
    uploads_to_a_process(1).await;
    uploads_to_a_server(1).await;
    unread(1).await;
    translated(1, JSON).await;
    translated(1, EVENTS).await;
    translated_unread(1).await;
    for (what, most, held) in [
        ("notifications that nobody reads", 8 * MIB, flood(40_000).await),
        ("notifications beside answers that are large", 8 * MIB, beside(256).await),
        ("large requests to a process, all at once", 96 * MIB, uploads_to_a_process(64).await),
        ("large requests to a server on HTTP, all at once", 64 * MIB, uploads_to_a_server(64).await),
        ("large answers that nobody reads", 80 * MIB, unread(12).await),
        ("large answers to clients of the other era", 64 * MIB, translated(32, JSON).await),
        ("the same as events", 64 * MIB, translated(32, EVENTS).await),
        ("the same when nobody reads them", 80 * MIB, translated_unread(12).await),
        ("lines that are too long", 8 * MIB, lines(64).await),
        ("bodies that are too large", 24 * MIB, bodies(64).await),
        ("bodies that are nested too deeply", 24 * MIB, nested(64).await),
        ("resources that one session watches", 8 * MIB, watched(2_000).await),
        ("answers that nobody comes back for", 24 * MIB, left(64).await),
    ] {
        println!("{what}: {} KiB more than before", held / 1024);
        assert!(held < most, "{what}: {held} bytes");
    }
}

/// A server that tells more than its client reads.
async fn flood(many: usize) -> usize {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let _unread = setup.send(Request::listen(&session)).await;
    let begun = held();
    let text = "x".repeat(1000);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"x": text}});
    for _ in 0..many {
        server.write(&changed).await;
    }
    settle(&setup, &mut server, &session).await;
    held().saturating_sub(begun)
}

/// A server that tells something small with each answer, which is large.
async fn beside(many: usize) -> usize {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let _unread = setup.send(Request::listen(&session)).await;
    let begun = held();
    let result = json!({"text": "x".repeat(MIB / 4)});
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    for _ in 0..many {
        let post = Request::post(&call(1, "large")).plain().in_session(&session);
        let (answer, ()) = tokio::join!(setup.send(post), async {
            let message = server.expect("tools/call").await;
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            server.write_line(&format!("{answer}\n{changed}")).await;
        });
        assert_eq!(answer.status, 200);
    }
    settle(&setup, &mut server, &session).await;
    held().saturating_sub(begun)
}

/// A server whose lines do not end.
async fn lines(many: usize) -> usize {
    let mut setup = Setup::with_limits(Limits { line_bytes: MIB, ..limits() }).await;
    let (mut server, _) = setup.begin().await;
    let begun = held();
    for _ in 0..many {
        server.write_bytes(&vec![b'x'; MIB]).await;
    }
    held().saturating_sub(begun)
}

/// Clients that send more than they may, some of them without saying so.
async fn bodies(many: usize) -> usize {
    let setup = Setup::sse(Forwarded::default()).await;
    let mut stream = setup.send(Request::new("GET", "/sse")).await;
    let path = stream.event().await.unwrap().trim_end().split_once(&setup.address).unwrap().1.to_owned();
    let begun = held();
    let mut most = 0;
    for _ in 0..many {
        let mut upload = TcpStream::connect(&setup.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", setup.address);
        upload.write_all(head.as_bytes()).await.unwrap();
        let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b'x'; MIB], b"\r\n"].concat();
        // Until it has had enough.
        for _ in 0..64 {
            if upload.write_all(&chunk).await.is_err() {
                break;
            }
            most = most.max(held().saturating_sub(begun));
        }
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, upload.read_to_end(&mut answer)).await.unwrap();
    }
    most
}

/// Clients whose messages have a million levels.
async fn nested(many: usize) -> usize {
    let mut setup = Setup::streamable().await;
    let (_server, session) = setup.begin().await;
    let begun = held();
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{}", "[".repeat(4 * MIB));
    let mut most = 0;
    for _ in 0..many {
        let post = Request::post(&Value::Null).body(body.clone()).in_session(&session);
        assert_eq!(setup.send(post).await.status, 400);
        most = most.max(held().saturating_sub(begun));
    }
    most
}

/// A client that asks for a lot, and leaves before the answers.
async fn left(many: usize) -> usize {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let calls = (0..many).map(|id| setup.send(Request::post(&call(id, "slow")).in_session(&session)));
    let (streams, asked) = tokio::join!(join_all(calls), async {
        let mut asked = Vec::new();
        for _ in 0..many {
            asked.push(server.expect("tools/call").await);
        }
        asked
    });
    drop(streams);
    settle(&setup, &mut server, &session).await;
    let begun = held();
    for message in &asked {
        server.answer(message, &json!({"text": "x".repeat(MIB)})).await;
    }
    settle(&setup, &mut server, &session).await;
    held().saturating_sub(begun)
}

/// A proxy that holds little.
fn tight() -> Limits {
    Limits { held: Budget::new(16 * MIB), ..limits() }
}

fn large() -> Request {
    let arguments = json!({"name": "large", "arguments": {"text": "x".repeat(4 * MIB)}});
    Request::post(&request(1, "tools/call", &arguments)).plain()
}

/// Sends so many large requests at once, of which each is answered or told to come back, and gives what was held meanwhile.
/// Nobody is answered before all others are told so.
async fn all_at_once(many: usize, address: &str, post: &Request, refused: &AtomicUsize) -> usize {
    let (begun, most) = (held(), AtomicUsize::new(0));
    let watching = async {
        loop {
            most.fetch_max(held().saturating_sub(begun), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let posts = (0..many).map(async |_| {
        let mut answer = post.clone().send(address).await;
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert!(answer.text().await.contains("too many bytes"));
            refused.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(answer.status, 200);
        }
    });
    tokio::select! {
        _ = join_all(posts) => {}
        () = watching => {}
    }
    let refused = refused.load(Ordering::Relaxed);
    assert!(many == 1 && refused == 0 || (1..many).contains(&refused), "{refused} of {many} were refused");
    most.into_inner()
}

/// Clients that send as much as they may, to a process that takes its time.
async fn uploads_to_a_process(many: usize) -> usize {
    let mut setup = Setup::with_limits(tight()).await;
    let (mut server, session) = setup.begin().await;
    let (post, refused) = (large().in_session(&session), AtomicUsize::new(0));
    let serving = async {
        let mut asked = Vec::new();
        while asked.len() + refused.load(Ordering::Relaxed) < many {
            tokio::select! {
                message = server.read() => asked.push(message["id"].clone()),
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
            }
        }
        for id in asked {
            server.answer(&json!({"id": id}), &json!({})).await;
        }
    };
    let (most, ()) = tokio::join!(all_at_once(many, &setup.address, &post, &refused), serving);
    // There is room again.
    let (again, ()) = tokio::join!(setup.send(post), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(again.status, 200);
    most
}

/// The same to a server on HTTP.
async fn uploads_to_a_server(many: usize) -> usize {
    let (taken, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let address = slow_server(&taken, &gate).await;
    let target = Target::local(Dialect::Streamable, &format!("http://{address}")).unwrap();
    let before = Before::with(Transparent::new(target, tight(), Forwarded::default()).unwrap()).await;
    let (post, refused) = (large(), AtomicUsize::new(0));
    let serving = async {
        while taken.load(Ordering::Relaxed) + refused.load(Ordering::Relaxed) < many {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        gate.close();
    };
    let (most, ()) = tokio::join!(all_at_once(many, &before.address, &post, &refused), serving);
    assert_eq!(before.send(post).await.status, 200, "there is room again");
    most
}

/// A server that takes all of a request, and answers it when a gate is closed. It keeps nothing.
async fn slow_server(taken: &Arc<AtomicUsize>, gate: &Arc<Semaphore>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (taken, gate) = (Arc::clone(taken), Arc::clone(gate));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (taken, gate) = (Arc::clone(&taken), Arc::clone(&gate));
            tokio::spawn(async move {
                let (mut head, mut part) = (Vec::new(), vec![0; 1 << 14]);
                let end = loop {
                    let Ok(read @ 1..) = stream.read(&mut part).await else { return };
                    head.extend_from_slice(&part[..read]);
                    if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                        break end + 4;
                    }
                };
                let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut missing = length.unwrap_or(0) + end - head.len();
                while missing > 0 {
                    let Ok(read @ 1..) = stream.read(&mut part).await else { return };
                    missing -= read;
                }
                if text.starts_with("post") {
                    taken.fetch_add(1, Ordering::Relaxed);
                    let _ = gate.acquire().await;
                }
                let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
                let answer = format!("{head}Content-Length: {}\r\n\r\n{answer}", answer.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

/// Clients that ask for more than what is between them and the proxy can take, and do not read it.
async fn unread(many: usize) -> usize {
    let mut setup = Setup::with_limits(tight()).await;
    let (mut server, session) = setup.begin().await;
    let begun = held();
    let result = json!({"text": "x".repeat(12 * MIB)}).to_string();
    let (mut unread, mut most) = (Vec::new(), 0);
    for _ in 0..many {
        let post = Request::post(&call(1, "large")).plain().in_session(&session);
        let (answer, ()) = tokio::join!(setup.send(post), async {
            let id = server.expect("tools/call").await["id"].clone();
            server.write_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
        });
        assert_eq!(answer.status, 200);
        unread.push(answer);
        most = most.max(held().saturating_sub(begun));
    }
    if many > 1 {
        let told = unread.last_mut().unwrap().json().await;
        assert_eq!(told["error"]["code"], -32603, "there is no room for all of them");
    }
    let first = unread.remove(0).text().await;
    assert!(first.len() > 12 * MIB, "what was answered is there");
    most
}

/// Clients of the other era than a server whose answers are large, and do not end before somebody wants them to.
async fn translated(many: usize, kind: &'static str) -> usize {
    let (sent, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (sessions, counted, closed) = (with_sessions("a"), Arc::clone(&sent), Arc::clone(&gate));
    let server = HttpServer::start(move |seen| {
        let message = seen.json();
        if message["method"] != "tools/call" {
            return sessions(seen);
        }
        slow_answer(kind, &message["id"], 64, Arc::clone(&counted), Arc::clone(&closed))
    })
    .await;
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let before = Before::with(Transparent::new(target, tight(), Forwarded::default()).unwrap()).await;
    let (begun, most, lost) = (held(), AtomicUsize::new(0), AtomicUsize::new(0));
    let watching = async {
        while sent.load(Ordering::Relaxed) + lost.load(Ordering::Relaxed) < many {
            most.fetch_max(held().saturating_sub(begun), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        gate.close();
    };
    let posts = join_all((0..many).map(async |_| {
        let answer = before.send(modern(1, "tools/call", json!({"name": "large"}))).await.text().await;
        let is_lost = answer.contains("too many bytes");
        assert!(is_lost || answer.len() > 4 * MIB, "{answer}");
        lost.fetch_add(usize::from(is_lost), Ordering::Relaxed);
    }));
    tokio::join!(posts, watching);
    let lost = lost.into_inner();
    assert!(many == 1 && lost == 0 || (1..many).contains(&lost), "{lost} of {many} were lost");
    most.into_inner()
}

/// The same, whose clients do not read what is there in full.
async fn translated_unread(many: usize) -> usize {
    let (sessions, sent) = (with_sessions("a"), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(1));
    let server = HttpServer::start(move |seen| {
        let message = seen.json();
        if message["method"] != "tools/call" {
            return sessions(seen);
        }
        slow_answer(JSON, &message["id"], 12 * 16, Arc::clone(&sent), Arc::clone(&gate))
    })
    .await;
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let before = Before::with(Transparent::new(target, tight(), Forwarded::default()).unwrap()).await;
    let (begun, mut most, mut unread) = (held(), 0, Vec::new());
    for _ in 0..many {
        unread.push(before.send(modern(1, "tools/call", json!({"name": "large"}))).await);
        most = most.max(held().saturating_sub(begun));
    }
    if many > 1 {
        let told = unread.last_mut().unwrap().text().await;
        assert!(told.contains("too many bytes"), "there is no room for all of them");
    }
    assert!(unread.remove(0).text().await.len() > 12 * MIB, "what was answered is there");
    most
}

/// An answer of so many parts of 64 KiB whose end comes when a gate is closed. It is no part of what is counted.
fn slow_answer(kind: &'static str, id: &Value, many: usize, sent: Arc<AtomicUsize>, gate: Arc<Semaphore>) -> Reply {
    static PART: [u8; MIB / 16] = [b'x'; MIB / 16];
    let (first, last) = if kind == EVENTS { ("data: ", "\n\n") } else { ("", "") };
    let first = format!(r#"{first}{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"text":""#);
    let last = format!(r#""}}}}{last}"#);
    let parts = std::iter::once(first.into()).chain(std::iter::repeat_n(Bytes::from_static(&PART), many));
    let end = async move {
        sent.fetch_add(1, Ordering::Relaxed);
        let _ = gate.acquire().await;
        last.into()
    };
    let parts = futures::stream::iter(parts).chain(futures::stream::once(end));
    let body = BodyExt::boxed(StreamBody::new(parts.map(|part| Ok(Frame::data(part)))));
    Response::builder().header("content-type", kind).body(body).unwrap()
}

/// A client that watches whatever it can think of.
async fn watched(many: usize) -> usize {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let begun = held();
    for number in 0..many {
        let uri = format!("hive://{number}/{}", "x".repeat(8000));
        let subscribe = request(1, "resources/subscribe", &json!({"uri": uri}));
        tokio::select! {
            answer = setup.send(Request::post(&subscribe).plain().in_session(&session)) => assert_eq!(answer.status, 200),
            () = agree(&mut server) => {}
        }
    }
    held().saturating_sub(begun)
}

/// Agrees to everything it is asked, and never ends.
async fn agree(server: &mut Server) {
    loop {
        let message = server.read().await;
        server.answer(&message, &json!({})).await;
    }
}

/// Asks something else. The proxy has read all that was written before when it has the answer.
async fn settle(setup: &Setup, server: &mut Server, session: &str) {
    let (answer, ()) = tokio::join!(setup.send(Request::post(&call("s", "a")).plain().in_session(session)), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
}
