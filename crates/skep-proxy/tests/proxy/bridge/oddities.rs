//! What is told of servers that do not talk as they should.

use std::time::Duration;

use serde_json::json;
use skep_proxy::Limits;

use super::server::{Server, Setup, limits};
use crate::http::{Request, call, initialize};
use crate::warnings::Warnings;

/// Makes sure that all that a server has written so far was read.
async fn read_all(setup: &Setup, server: &mut Server) {
    let (answer, ()) = tokio::join!(setup.send(Request::post(&call(1, "a")).plain()), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn what_a_server_writes_that_is_no_message_is_told_once() {
    let warnings = Warnings::listen();
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    for _ in 0..10 {
        server.write_line("").await;
        server.write_line(&format!("\u{1b}[31mListening{}", "!".repeat(1000))).await;
    }
    read_all(&setup, &mut server).await;
    let told = warnings.take();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("wrote a line that is no message") && told[0].contains("times=1 "), "{told:?}");
    let start = format!(r#"begins="\u{{1b}}[31mListening{}" "#, "!".repeat(80 - 14));
    assert!(told[0].contains(&start), "{told:?}");
}

#[tokio::test]
async fn a_server_that_could_not_read_a_message_is_told_of() {
    let warnings = Warnings::listen();
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let error = json!({"code": -32700, "message": "Parse error"});
    server.write(&json!({"jsonrpc": "2.0", "id": null, "error": error})).await;
    server.write(&json!({"jsonrpc": "2.0", "error": error})).await;
    read_all(&setup, &mut server).await;
    let told = warnings.take();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("refused a message without saying which"), "{told:?}");
    assert!(told[0].contains("code=-32700 ") && told[0].contains("Parse error"), "{told:?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_told_of() {
    let warnings = Warnings::listen();
    let mut setup = Setup::with_limits(Limits { request: Duration::from_secs(1), ..limits() }).await;
    let mut server = setup.server().await;
    let (refused, _) =
        tokio::join!(setup.send(Request::post(&initialize("2025-11-25")).plain()), server.expect("initialize"),);
    assert_eq!(refused.status, 200);
    let told = warnings.take();
    assert!(told.len() == 1 && told[0].contains("has not answered the handshake in time"), "{told:?}");
    // It is not called off, so that the next one is what the server hears next.
    let (session, _) = tokio::join!(setup.session("2025-11-25"), server.agree());
    for _ in 0..2 {
        let hung = setup.send(Request::post(&call(1, "hang")).plain().in_session(&session)).await;
        assert_eq!(hung.status, 504);
    }
    let told = warnings.take();
    assert!(told.len() == 1 && told[0].contains("has not answered requests in time"), "{told:?}");
    assert!(told[0].contains("patience=1s "), "{told:?}");
}
