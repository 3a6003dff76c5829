//! What steps depend on fails under them: nobody is there, or they are silent, say garbage or far too much, or have no room.
//! Whatever it is, clients are told so in the same words, and are served as soon as nothing is wrong any more.

mod dependencies;
mod fault;
mod records;
mod redis;

use std::cell::Cell;
use std::time::Duration;

use serde_json::json;

use self::dependencies::{Row, Told, decision_point, rows};
use self::fault::{Dependency, Fault};
use super::{Guarded, with_tools};
use crate::http::{PATIENCE, Request, Response, call, request};
use crate::inside::BARRED_FORMS;
use crate::transparent::server::{Seen, reply};

/// Longer than a proxy waits for anybody.
const LONGEST: Duration = Duration::from_mins(2);

/// How many tools a list has, which is more than are asked about at the same time.
const LISTED: usize = 70;
/// A little longer than a decision may take.
const ONE_ANSWER: Duration = Duration::from_secs(45);

/// A proxy with the steps of a row.
struct Asked {
    guarded: Guarded,
    token: String,
}

impl Asked {
    async fn new(row: &Row, address: &str) -> Self {
        let (steps, token) = (row.chain)(address);
        Self { guarded: Guarded::new(steps, with_tools).await, token }
    }

    async fn ask(&self) -> Response {
        let request = Request::post(&call("seven", "feed")).plain().within(LONGEST);
        self.guarded.send(request.header("Authorization", &format!("Bearer {}", self.token))).await
    }

    /// How many calls have reached the server since it was last asked.
    fn served(&self) -> usize {
        // The proxy asks for itself whether the server is alive.
        let is_call = |seen: &Seen| seen.json()["method"] == "tools/call";
        self.guarded.server.seen().into_iter().filter(is_call).count()
    }
}

/// What a list shows of which nobody says whether it may be seen, and that no list waits for one answer after the other.
async fn check_list(row: &Row, fault: Fault) {
    let name = format!("a list before {}, {fault:?}", row.name);
    let dependency = Dependency::with(fault, &row.healthy).await;
    let (steps, _) = (row.chain)(&dependency.address);
    let tools: Vec<_> = (0..LISTED).map(|number| json!({"name": format!("t{number}")})).collect();
    let guarded = Guarded::new(steps, move |seen| {
        let result = json!({"tools": tools, "nextCursor": "2"});
        let answer = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result});
        reply(200, &[("content-type", "application/json")], answer.to_string())
    })
    .await;
    let list = || Request::post(&request("seven", "tools/list", &json!({}))).plain().within(LONGEST);
    let began = tokio::time::Instant::now();
    let mut answer =
        if fault == Fault::Silence { without_waiting(guarded.send(list())).await } else { guarded.send(list()).await };
    let took = began.elapsed();
    let nothing = r#"{"jsonrpc":"2.0","id":"seven","result":{"tools":[],"nextCursor":"2"}}"#;
    assert_eq!((answer.status, answer.json().await), (200, serde_json::from_str(nothing).unwrap()), "{name}");
    assert!(took < ONE_ANSWER, "{name}: {took:?}");
    let healed = dependency.heal();
    healed.seen();
    let shown = guarded.send(list()).await.json().await["result"]["tools"].as_array().unwrap().len();
    assert_eq!((shown, healed.seen().len()), (LISTED, LISTED), "{name}");
}

async fn check(row: &Row, fault: Fault) {
    let name = format!("{}, {fault:?}", row.name);
    let dependency = Dependency::with(fault, &row.healthy).await;
    let address = dependency.address.clone();
    let asked = Asked::new(row, &address).await;
    let answer = if fault == Fault::Silence { without_waiting(asked.ask()).await } else { asked.ask().await };
    row.told.check(&name, answer, &address).await;
    assert_eq!(asked.served(), usize::from(row.told == Told::Result), "{name}");
    let healed = dependency.heal();
    healed.seen();
    Told::Result.check(&name, asked.ask().await, &address).await;
    assert_eq!(asked.served(), 1, "{name}");
    let heard = async {
        while healed.seen().is_empty() && row.is_told_later {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("{name}: it is not told"));
}

/// Lets time pass much faster than it does, but no more at once than leaves everything that is under way time to arrive.
async fn without_waiting<T>(waiting: impl Future<Output = T>) -> T {
    let is_done = Cell::new(false);
    let hurrying = async {
        while !is_done.get() {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::time::resume();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waiting = async {
        let done = waiting.await;
        is_done.set(true);
        done
    };
    tokio::join!(waiting, hurrying).0
}

#[tokio::test]
async fn whatever_is_wrong_with_those_whom_steps_depend_on_is_told_in_the_same_words() {
    for row in rows().await {
        for fault in [Fault::Absence, Fault::Garbage, Fault::Megabytes] {
            check(&row, fault).await;
        }
    }
}

#[tokio::test]
async fn a_list_is_empty_and_not_late_whatever_is_wrong_with_whoever_decides_about_it() {
    for fault in Fault::ALL {
        check_list(&decision_point(), fault).await;
    }
}

#[tokio::test]
async fn whoever_is_silent_is_given_up_and_asked_again() {
    for row in rows().await {
        check(&row, Fault::Silence).await;
    }
}

/// Whoever is named so that only looking the name up tells where that leads fails like anybody else.
#[tokio::test]
async fn nobody_is_asked_where_clouds_answer_and_clients_are_told_as_of_any_failure() {
    for row in rows().await {
        for form in BARRED_FORMS {
            let (address, name) = (format!("{form}:80"), format!("{} at {form}", row.name));
            let asked = Asked::new(&row, &address).await;
            let answer = without_waiting(asked.ask()).await;
            row.told.check(&name, answer, &address).await;
            assert_eq!(asked.served(), usize::from(row.told == Told::Result), "{name}");
        }
    }
}
