//! Everything at once: servers that die with what they were asked, answers in any order, clients that go away.

use std::time::Duration;

use serde_json::{Value, json};
use skep_proxy::Limits;
use tokio::sync::mpsc;

use super::server::{Server, Setup, limits};
use crate::http::{PATIENCE, Request, Response, initialize, request};

const CLIENTS: u64 = 12;
const CALLS: u64 = 25;
/// How often the server dies. The proxy gives one up that dies too often.
const DEATHS: u64 = 3;
/// After so long without a new request the server answers those that it held back.
const PAUSE: Duration = Duration::from_millis(20);

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Plays servers, one after the other.
async fn play(mut servers: mpsc::UnboundedReceiver<Server>) {
    let mut random = Random(7);
    let mut deaths = 0;
    while let Some(mut server) = servers.recv().await {
        let mut held: Vec<Value> = Vec::new();
        loop {
            let next = tokio::time::timeout(PAUSE, server.next()).await;
            let is_idle = next.is_err();
            let message = match next {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => Value::Null,
            };
            match message["method"].as_str() {
                Some("initialize") => server.answer(&message, &json!({"protocolVersion": "2025-11-25"})).await,
                Some("tools/call") => held.push(message),
                Some("notifications/cancelled") => held.retain(|call| call["id"] != message["params"]["requestId"]),
                _ => {}
            }
            if deaths < DEATHS && held.len() > 3 && random.below(40) == 0 {
                deaths += 1;
                break;
            }
            if is_idle || random.below(3) == 0 {
                while !held.is_empty() {
                    let index = random.below(held.len() as u64);
                    let call = held.swap_remove(usize::try_from(index).unwrap());
                    server.answer(&call, &json!({"echo": call["params"]["name"]})).await;
                }
            }
        }
    }
}

/// What became of a request.
#[derive(Debug, Default, Clone, Copy)]
struct Outcomes {
    answered: u64,
    failed: u64,
    left: u64,
}

/// Whether it was answered. If so, the answer is ours.
async fn judge(mut response: Response, name: &str) -> bool {
    let is_stream = response.header("content-type") == Some("text/event-stream");
    let answer = match (response.status, is_stream) {
        (500 | 502, _) => return false,
        (200, true) => response.message().await.unwrap(),
        (200, false) => response.json().await,
        (status, _) => panic!("{status}"),
    };
    assert_eq!(answer["id"], 1, "{answer}");
    if answer.get("result").is_some() {
        assert_eq!(answer["result"]["echo"], name, "somebody else's answer");
        return true;
    }
    assert!(matches!(answer["error"]["code"].as_i64(), Some(-32603 | -32000)), "{answer}");
    false
}

/// Comes back for as long as it is asked to.
async fn patient(post: &Request, address: &str) -> Response {
    loop {
        let response = post.clone().send(address).await;
        if response.status != 503 {
            return response;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn client(address: String, number: u64) -> Outcomes {
    let mut random = Random(number);
    let mut outcomes = Outcomes::default();
    let session = loop {
        let response = patient(&Request::post(&initialize("2025-11-25")), &address).await;
        if let Some(session) = response.header("mcp-session-id") {
            break session.to_owned();
        }
    };
    for count in 0..CALLS {
        let name = format!("{number}-{count}");
        // Everybody uses the same id.
        let mut post = Request::post(&request(1, "tools/call", &json!({"name": name})));
        if random.below(3) > 0 {
            post = post.in_session(&session);
        }
        if random.below(2) == 0 {
            post = post.plain();
        }
        if random.below(6) == 0 {
            // Gone before, while or after it is answered.
            let patience = Duration::from_millis(random.below(30));
            let _ = tokio::time::timeout(patience, post.send(&address)).await;
            outcomes.left += 1;
        } else if judge(patient(&post, &address).await, &name).await {
            outcomes.answered += 1;
        } else {
            outcomes.failed += 1;
        }
    }
    outcomes
}

#[tokio::test]
async fn in_all_the_confusion_nobody_gets_what_is_not_theirs_and_nothing_is_left() {
    // So long that a request which is left over keeps the proxy from ending in time.
    let mut setup = Setup::with_limits(Limits { drain: Duration::from_hours(1), ..limits() }).await;
    let (_, none) = mpsc::unbounded_channel();
    let playing = tokio::spawn(play(std::mem::replace(&mut setup.servers, none)));
    let clients = (0..CLIENTS).map(|number| tokio::spawn(client(setup.address.clone(), number)));
    let mut all = Outcomes::default();
    for outcomes in futures::future::join_all(clients).await {
        let Outcomes { answered, failed, left } = outcomes.unwrap();
        all = Outcomes { answered: all.answered + answered, failed: all.failed + failed, left: all.left + left };
    }
    println!("figure: {all:?}");
    assert_eq!(all.answered + all.failed + all.left, CLIENTS * CALLS);
    // Only what a server was asked when it died has no answer.
    assert!(all.failed <= DEATHS * CLIENTS && all.left > 0, "{all:?}");
    setup.stop.cancel();
    tokio::time::timeout(PATIENCE, &mut setup.link).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(PATIENCE, &mut setup.listener).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(PATIENCE, playing).await.unwrap().unwrap();
}
