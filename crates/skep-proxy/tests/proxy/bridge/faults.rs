//! Servers that hang, end and come back; proxies that stop.

use std::time::Duration;

use serde_json::json;
use skep_proxy::{Forwarded, Limits};
use tokio::io::AsyncWriteExt as _;

use super::server::{Setup, limits};
use crate::http::{PATIENCE, Request, call, initialize, request};
use crate::warnings::Warnings;

#[tokio::test]
async fn trap_64_a_request_that_hangs_times_out_alone() {
    let mut setup = Setup::with_limits(Limits { request: Duration::from_secs(5), ..limits() }).await;
    let (mut server, session) = setup.begin().await;
    let address = setup.address.clone();
    let post = Request::post(&call("hang", "hang")).plain().in_session(&session);
    let hanging = tokio::spawn(async move { post.send(&address).await });
    let mut streaming = setup.send(Request::post(&call("hang", "hang")).in_session(&session)).await;
    let hung = [server.expect("tools/call").await, server.expect("tools/call").await];
    let (mut quick, ()) =
        tokio::join!(setup.send(Request::post(&call(1, "quick")).plain().in_session(&session)), async {
            let message = server.expect("tools/call").await;
            server.answer(&message, &json!({})).await;
        });
    assert_eq!(quick.json().await["id"], 1);
    let mut hanging = hanging.await.unwrap();
    assert_eq!((hanging.status, hanging.text().await.trim_end()), (504, "Timeout waiting for response from container"));
    let told = streaming.message().await.unwrap();
    let error = json!({"code": -32000, "message": "Timeout: the MCP server has not answered within 5s"});
    assert_eq!((&told["id"], &told["error"]), (&json!("hang"), &error));
    // The server is told, and what it says later is dropped.
    for _ in 0..2 {
        server.expect("notifications/cancelled").await;
    }
    server.answer(&hung[0], &json!({})).await;
}

#[tokio::test]
async fn what_a_server_says_after_it_has_closed_its_input_is_heard() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let mut stream = setup.send(Request::post(&call(7, "slow")).in_session(&session)).await;
    let asked = server.expect("tools/call").await;
    let mut output = server.close_input();
    // The proxy finds out with what it writes next.
    let mut next = setup.send(Request::post(&call(8, "next")).in_session(&session)).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"last": true}});
    output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    assert_eq!(stream.message().await.unwrap()["result"], json!({"last": true}));
    assert_eq!(next.message().await.unwrap()["error"]["code"], -32603);
}

#[tokio::test]
async fn a_stream_of_events_is_opened_when_the_server_is_ready() {
    let mut setup = Setup::sse(Forwarded::default()).await;
    drop(setup.server().await);
    let open = || Request::new("GET", "/sse").header("Accept", "text/event-stream");
    let refused = async {
        loop {
            let answer = setup.send(open()).await;
            if answer.status != 200 {
                break answer;
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
}

#[tokio::test]
async fn trap_23_a_server_that_ends_is_followed_by_one_that_knows_what_it_knew() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let subscribe = request(1, "resources/subscribe", &json!({"uri": "hive://1"}));
    let (_, ()) = tokio::join!(setup.send(Request::post(&subscribe).in_session(&session)), async {
        let message = server.expect("resources/subscribe").await;
        server.answer(&message, &json!({})).await;
    });
    let mut stream = setup.send(Request::post(&call(7, "slow")).in_session(&session)).await;
    server.expect("tools/call").await;
    drop(server);
    let told = stream.message().await.unwrap();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(7), &json!(-32603)));
    let mut server = setup.server().await;
    // Until the server is back the client is asked to wait.
    let early = setup.send(Request::post(&call(8, "a")).in_session(&session)).await;
    assert_eq!((early.status, early.header("retry-after")), (503, Some("1")));
    assert_eq!(server.agree().await["params"]["clientInfo"]["name"], "test");
    assert_eq!(server.expect("resources/subscribe").await["params"]["uri"], "hive://1");
    let patient = setup.once_available(Request::post(&call(9, "a")).plain().in_session(&session));
    let (mut answer, ()) = tokio::join!(patient, async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({"back": true})).await;
    });
    assert_eq!(answer.json().await["result"], json!({"back": true}));
}

#[tokio::test]
async fn a_server_that_answered_before_it_ended_has_not_failed() {
    let warnings = Warnings::listen();
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    for is_answered in [true, true, false, false, true] {
        if is_answered {
            let patient = setup.once_available(Request::post(&call(1, "a")).plain().in_session(&session));
            let (answer, ()) = tokio::join!(patient, async {
                let message = server.expect("tools/call").await;
                server.answer(&message, &json!({})).await;
            });
            assert_eq!(answer.status, 200);
        }
        drop(server);
        server = setup.server().await;
        server.agree().await;
    }
    let told = warnings.take();
    let failures = [0, 0, 1, 2, 0].map(|failures| format!(" failures={failures} "));
    assert_eq!(told.len(), failures.len(), "{told:?}");
    assert!(told.iter().zip(&failures).all(|(told, failures)| told.contains(failures.as_str())), "{told:?}");
}

#[tokio::test]
async fn a_flood_of_the_server_does_not_fill_the_memory_or_stop_it() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let unread = setup.send(Request::listen(&session)).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    for _ in 0..20_000 {
        server.write(&changed).await;
    }
    let (mut answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain().in_session(&session)), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.json().await["id"], 1);
    drop(unread);
}

#[tokio::test]
async fn trap_62_a_proxy_that_stops_ends_streams_and_closes_its_port() {
    let mut setup = Setup::with_limits(Limits { drain: Duration::from_secs(5), ..limits() }).await;
    let (mut server, session) = setup.begin().await;
    let mut background = setup.send(Request::listen(&session)).await;
    let mut hanging = setup.send(Request::post(&call(1, "hang")).in_session(&session)).await;
    let mut slow = setup.send(Request::post(&call(2, "slow")).in_session(&session)).await;
    server.expect("tools/call").await;
    let message = server.expect("tools/call").await;
    let (address, plain) = (setup.address.clone(), Request::post(&call(3, "hang")).plain().in_session(&session));
    let plain = tokio::spawn(async move { plain.send(&address).await });
    server.expect("tools/call").await;
    setup.stop.cancel();
    assert_eq!(background.message().await, None);
    // What is answered in time is delivered, and what is not is told.
    server.answer(&message, &json!({"done": true})).await;
    assert_eq!(slow.message().await.unwrap()["result"], json!({"done": true}));
    let told = "the proxy is stopping; whether the MCP server did what was asked is unknown";
    assert_eq!(hanging.message().await.unwrap()["error"], json!({"code": -32000, "message": told}));
    let mut plain = plain.await.unwrap();
    assert_eq!((plain.status, plain.text().await.trim_end()), (504, told));
    let address = setup.address.clone();
    tokio::time::timeout(PATIENCE, &mut setup.listener).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(PATIENCE, &mut setup.link).await.unwrap().unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_proxy_whose_server_is_not_there_yet_says_so() {
    use skep_proxy::stdio::Bridge;
    use skep_proxy::{Proxy, Readiness};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stop = tokio_util::sync::CancellationToken::new();
    let proxy = Proxy::streamable(Bridge::new(limits(), Readiness::default()));
    let serving = tokio::spawn(proxy.serve(listener, stop.clone()));
    for message in [initialize("2025-11-25"), call(1, "a")] {
        let early = Request::post(&message).send(&address).await;
        assert_eq!((early.status, early.header("retry-after")), (503, Some("1")));
    }
    let mut health = Request::new("GET", "/health").send(&address).await;
    assert_eq!(health.status, 200);
    assert_eq!(health.json().await["status"], "healthy");
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn trap_64_a_server_that_crashes_is_told_at_once() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let (mut told, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain().in_session(&session)), async {
        server.expect("tools/call").await;
        drop(server);
    });
    assert_eq!((told.status, told.text().await.trim_end()), (500, "Failed to process request"));
}

#[tokio::test]
async fn trap_63_stopping_happens_once_however_often_it_is_asked_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    stop.cancel();
    let bridge = skep_proxy::stdio::Bridge::new(limits(), skep_proxy::Readiness::default());
    let serving = skep_proxy::Proxy::streamable(bridge).serve(listener, stop);
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap();

    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let mut slow = setup.send(Request::post(&call(2, "slow")).in_session(&session)).await;
    let message = server.expect("tools/call").await;
    setup.stop.cancel();
    setup.stop.cancel();
    assert!(!setup.listener.is_finished() && !setup.link.is_finished(), "there is something to finish");
    server.answer(&message, &json!({"done": true})).await;
    assert_eq!(slow.message().await.unwrap()["result"], json!({"done": true}));
    drop(slow);
    tokio::time::timeout(PATIENCE, &mut setup.listener).await.unwrap().unwrap().unwrap();
    setup.stop.cancel();
}

#[tokio::test]
async fn trap_70_after_a_restart_there_is_one_connection_and_it_is_the_new_one() {
    let mut setup = Setup::streamable().await;
    let (server, session) = setup.begin().await;
    drop(server);
    let mut server = setup.server().await;
    server.agree().await;
    let patient = setup.once_available(Request::post(&call(1, "a")).plain().in_session(&session));
    let (answer, ()) = tokio::join!(patient, async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
    assert!(setup.servers.try_recv().is_err(), "nobody else connected");
}

#[tokio::test]
async fn trap_70_a_server_that_is_gone_for_good_is_not_looked_for() {
    let mut setup = Setup::streamable().await;
    let (server, _) = setup.begin().await;
    setup.servers.close();
    drop(server);
    let ended = tokio::time::timeout(PATIENCE, &mut setup.link).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().to_string(), "no more servers");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_at_once() {
    let mut setup = Setup::with_limits(Limits { line_bytes: 1 << 16, ..limits() }).await;
    let (mut server, session) = setup.begin().await;
    let long = json!("x".repeat(1 << 17)).to_string();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (result, why) in [(&long, "it has more than 65536 bytes"), (&deep, "it nests deeper than 127 values")] {
        // Some servers write the id first, and some write it last.
        for is_first in [true, false] {
            for post in [Request::post(&call("a", "large")), Request::post(&call("a", "large")).plain()] {
                let (mut answer, ()) = tokio::join!(setup.send(post.in_session(&session)), async {
                    let id = server.expect("tools/call").await["id"].clone();
                    let line = if is_first {
                        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
                    } else {
                        format!(r#"{{"result":{result},"jsonrpc":"2.0","id":{id}}}"#)
                    };
                    server.write_line(&line).await;
                });
                let is_stream = answer.header("content-type") == Some("text/event-stream");
                let told = if is_stream { answer.message().await.unwrap() } else { answer.json().await };
                let expected = format!("the answer of the MCP server cannot be read: {why}");
                let error = json!({"code": -32603, "message": expected});
                assert_eq!(told, json!({"jsonrpc": "2.0", "id": "a", "error": error}), "{is_first}");
            }
        }
    }
}
