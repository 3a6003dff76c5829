use std::sync::Mutex;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::super::scenario::Scenario;
use super::super::server::{CallError, Caller, Server};
use super::{Outcome, run};

/// Answers the requests for the namespace and its account, and then from a list.
struct Scripted(Mutex<Vec<Response<Body>>>);

impl Scripted {
    fn new(answers: Vec<(u16, &str)>) -> Self {
        let response =
            |(status, body): (u16, &str)| json_response(status).body(Body::from(body.as_bytes().to_vec())).unwrap();
        Self(Mutex::new(answers.into_iter().rev().map(response).collect()))
    }
}

fn json_response(status: u16) -> http::response::Builder {
    Response::builder().status(status).header("content-type", "application/json")
}

impl Server for Scripted {
    async fn call(&self, _: &Caller, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let path = request.uri().path();
        if path == "/api/v1/namespaces" || path.ends_with("/serviceaccounts") {
            return Ok(json_response(201).body(Body::from(request.into_body())).unwrap());
        }
        Ok(self.0.lock().unwrap().pop().expect("the scenario asks more than the test expects"))
    }
}

async fn outcome(steps: Value, answers: Vec<(u16, &str)>) -> Outcome {
    let mut scenario: Scenario = serde_json::from_value(json!({ "steps": steps })).unwrap();
    scenario.name = "area/name".into();
    run(&Scripted::new(answers), &scenario).await
}

#[tokio::test]
async fn an_expectation_that_does_not_hold_is_a_failure_and_the_rest_still_runs() {
    let steps = json!([
        { "request": "GET /a", "expect": { "status": 200, "body": { "x": 1 } } },
        { "request": "GET /b", "expect": { "status": 200 } },
    ]);
    let outcome = outcome(steps, vec![(404, r#"{"x":2}"#), (200, "{}")]).await;
    assert_eq!(outcome.failures.len(), 2, "{:?}", outcome.failures);
    assert!(outcome.failures[0].starts_with("area/name step 1 (GET /a): "), "{:?}", outcome.failures);
    assert_eq!(outcome.recording.exchanges.len(), 2);
}

#[tokio::test]
async fn eventually_repeats_and_records_the_last_answer() {
    let steps = json!([{ "request": "GET /a", "eventually": true, "expect": { "status": 200 } }]);
    let outcome = outcome(steps, vec![(404, "{}"), (404, "{}"), (200, r#"{"done":true}"#)]).await;
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(outcome.recording.exchanges[0].body, json!({ "done": true }));
}

#[tokio::test]
async fn a_watch_collects_events() {
    let steps = json!([
        { "watch": "w", "request": "GET /a?watch=true" },
        { "collect": "w", "until": { "events": 1 } },
        { "collect": "w", "until": "end" },
    ]);
    let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"3"}}}"#;
    let events = format!("{{\"type\":\"ADDED\"}}\n{bookmark}\n{{\"type\":\"DELETED\"}}\n");
    let outcome = outcome(steps, vec![(200, &events)]).await;
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let seen: Vec<_> = outcome.recording.exchanges.iter().map(|exchange| exchange.body.clone()).collect();
    assert_eq!(seen, [Value::Null, json!([{ "type": "ADDED" }]), json!([{ "type": "DELETED" }])]);
}

#[tokio::test]
async fn what_was_created_outside_of_namespaces_is_remembered() {
    let steps = json!([{ "request": "POST /apis/x/v1/things" }, { "request": "POST /x/namespaces/n/things" }]);
    let outside = r#"{"metadata":{"name":"a","uid":"1"}}"#;
    let inside = r#"{"metadata":{"name":"b","uid":"2","namespace":"n"}}"#;
    let outcome = outcome(steps, vec![(201, outside), (201, inside)]).await;
    assert_eq!(outcome.leftovers, ["/apis/x/v1/things/a"]);
}
