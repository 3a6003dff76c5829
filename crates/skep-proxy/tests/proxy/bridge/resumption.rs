//! A client that loses a stream comes back for the rest.

use serde_json::{Value, json};

use super::server::Setup;
use crate::http::{Request, Response, request};

fn id_of(event: &str) -> String {
    event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned()
}

async fn rest(mut stream: Response) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await {
        messages.push(message);
    }
    messages
}

#[tokio::test]
async fn a_lost_stream_is_resumed_where_it_broke() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let other = setup.session("2025-11-25").await;
    let slow = request(1, "tools/call", &json!({"name": "slow", "_meta": {"progressToken": 1}}));
    let mut stream = setup.send(Request::post(&slow).in_session(&session)).await;
    let asked = server.expect("tools/call").await;
    let primer = stream.event().await.unwrap();
    assert!(primer.contains("data: \n"), "{primer}");
    let progress = |step: u64| {
        let params = json!({"progressToken": asked["params"]["_meta"]["progressToken"], "progress": step});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    server.write(&progress(1)).await;
    let first = stream.event().await.unwrap();
    drop(stream);
    // The call goes on without the client, and what it says is kept.
    server.write(&progress(2)).await;
    server.answer(&asked, &json!({"done": true})).await;
    let resume = |session: &str, id: &str| setup.send(Request::listen(session).header("Last-Event-ID", id));
    let missed = rest(resume(&session, &id_of(&first)).await).await;
    assert_eq!(missed.len(), 2, "{missed:?}");
    assert_eq!((&missed[1]["id"], &missed[1]["result"]), (&json!(1), &json!({"done": true})));
    assert_eq!(rest(resume(&session, &id_of(&primer)).await).await.len(), 3);
    for unknown in ["999-1", "nonsense", "1-999", "18446744073709551615-18446744073709551615"] {
        let stream = resume(&session, unknown).await;
        assert_eq!(stream.status, 200);
        assert_eq!(rest(stream).await, Vec::<Value>::new(), "{unknown}");
    }
    assert_eq!(rest(resume(&other, &id_of(&primer)).await).await, Vec::<Value>::new(), "streams belong to sessions");
}

#[tokio::test]
async fn older_sessions_get_no_event_without_a_message() {
    let mut setup = Setup::streamable().await;
    let (mut server, _) = setup.begin().await;
    let session = setup.session("2025-06-18").await;
    let slow = request(1, "tools/call", &json!({"name": "slow"}));
    let mut stream = setup.send(Request::post(&slow).in_session(&session)).await;
    let asked = server.expect("tools/call").await;
    server.answer(&asked, &json!({})).await;
    assert!(stream.event().await.unwrap().contains("\"result\""));
}
