//! More requests at once than a server reads at once.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use skep_proxy::Limits;

use super::server::{Server, Setup, limits};
use crate::http::{Request, request};
use crate::warnings::Warnings;

/// More than all who are on the way to a server hold.
const MANY: usize = 400;

/// A call that fills what lies between the proxy and the server.
fn large(id: usize) -> Value {
    request(id, "tools/call", &json!({"name": "a", "arguments": {"id": id, "text": "x".repeat(4 << 10)}}))
}

async fn answer_many(server: &mut Server) {
    for _ in 0..MANY {
        let message = server.expect("tools/call").await;
        server.answer(&message, &message["params"]["arguments"]["id"]).await;
    }
}

#[tokio::test]
async fn all_of_many_calls_at_once_are_answered() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let sessions = join_all((0..MANY).map(|_| setup.session("2025-11-25"))).await;
    let calls = sessions.iter().enumerate().map(async |(id, session)| {
        let post = Request::post(&large(id)).in_session(session);
        let mut answer = setup.send(if id % 2 == 0 { post.plain() } else { post }).await;
        let told = if id % 2 == 0 { answer.json().await } else { answer.message().await.unwrap() };
        assert_eq!((&told["id"], &told["result"]), (&json!(id), &json!(id)), "{told}");
    });
    let slow = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        answer_many(&mut server).await;
    };
    tokio::join!(join_all(calls), slow);
}

#[tokio::test]
async fn a_server_that_does_not_read_for_long_is_told_of_and_nothing_more_is_sent() {
    let warnings = Warnings::listen();
    let mut setup = Setup::with_limits(Limits { request: Duration::from_secs(2), ..limits() }).await;
    let (_server, session) = setup.begin().await;
    warnings.take();
    let statuses = join_all((0..MANY).map(async |id| {
        let post = Request::post(&large(id));
        // A session has less under way than that.
        let post = if id % 2 == 0 { post.plain() } else { post.in_session(&session) };
        let mut answer = setup.send(post).await;
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            let told = "the MCP server does not read fast enough; nothing was sent";
            assert_eq!(answer.text().await.trim_end(), told);
        }
        answer.status
    }));
    let statuses = statuses.await;
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert!((100..MANY - 100).contains(&refused), "{refused}");
    let told = warnings.take();
    let told: Vec<_> = told.iter().filter(|told| told.contains("does not read fast enough")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}
