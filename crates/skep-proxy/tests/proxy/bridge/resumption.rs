//! A client that loses a stream comes back for the rest.

use serde_json::{Value, json};

use super::server::{Server, Setup};
use crate::http::{Request, Response, call, request};

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

/// Loses the streams of some calls before there are answers, and gives the calls and what to come back with.
async fn lose(setup: &Setup, server: &mut Server, session: &str, many: u64) -> Vec<(Value, String)> {
    let mut lost = Vec::new();
    for id in 0..many {
        let (mut stream, asked) = begin(setup, server, session, id).await;
        lost.push((asked, id_of(&stream.event().await.unwrap())));
    }
    settle(setup, server, session).await;
    lost
}

async fn begin(setup: &Setup, server: &mut Server, session: &str, id: u64) -> (Response, Value) {
    let post = Request::post(&call(id, "slow")).in_session(session);
    tokio::join!(setup.send(post), server.expect("tools/call"))
}

/// Asks something else, so that the proxy has noticed whatever happened before.
async fn settle(setup: &Setup, server: &mut Server, session: &str) {
    let post = Request::post(&call("settle", "now")).plain().in_session(session);
    let (answer, ()) = tokio::join!(setup.send(post), async {
        let message = server.expect("tools/call").await;
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn an_answer_that_nobody_has_read_outlives_those_that_were() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let large = json!({"text": "x".repeat(600 << 10)});
    let [(asked, lost)] = lose(&setup, &mut server, &session, 1).await.try_into().unwrap();
    server.answer(&asked, &large).await;
    for id in 1..4 {
        let (mut stream, asked) = begin(&setup, &mut server, &session, id).await;
        // That it began is what makes the proxy look for room.
        stream.event().await.unwrap();
        server.answer(&asked, &large).await;
        assert_eq!(rest(stream).await[0]["result"], large);
    }
    let resumed = setup.send(Request::listen(&session).header("Last-Event-ID", &lost)).await;
    assert_eq!(rest(resumed).await, [json!({"jsonrpc": "2.0", "id": 0, "result": large})]);
}

#[tokio::test]
async fn a_client_that_leaves_too_much_unread_is_told_which_answers_are_lost() {
    let mut setup = Setup::streamable().await;
    let (mut server, session) = setup.begin().await;
    let lost = lose(&setup, &mut server, &session, 30).await;
    for (number, (asked, _)) in lost.iter().enumerate() {
        // The last one is small, and finds room whatever comes before it.
        let text = if number < 29 { "x".repeat(1 << 20) } else { "small".to_owned() };
        server.answer(asked, &json!({"text": text})).await;
    }
    settle(&setup, &mut server, &session).await;
    let mut kept = Vec::new();
    for (_, last) in &lost {
        let resumed = setup.send(Request::listen(&session).header("Last-Event-ID", last)).await;
        let [answer] = rest(resumed).await.try_into().unwrap();
        assert!(answer["result"].is_object() || answer["error"]["code"] == -32603, "{answer}");
        kept.push(answer["result"].is_object());
    }
    let expected: Vec<_> = (0..30).map(|number| number < 16 || number == 29).collect();
    assert_eq!(kept, expected, "those that came first are kept");
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
