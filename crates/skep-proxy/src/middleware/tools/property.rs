//! What is listed and what can be called, whatever the rules are.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::answer::Answer;
use crate::body::Body;
use crate::limits::Limits;
use crate::listener::Peer;
use crate::middleware::exchange::{Exchange, messages};
use crate::middleware::layer::{Destination, Layer, Next};
use crate::upload::{Sent, Upload};

/// A server with these tools, which says what was called.
struct Server(BTreeSet<String>);

impl Destination for Server {
    fn answer<'a>(&'a self, mut exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        async move {
            exchange.receive().await.unwrap();
            let payload = exchange.parsed().unwrap().unwrap();
            let asked: Value = serde_json::from_str(messages(payload).next().unwrap().as_str()).unwrap();
            let result = if asked["method"] == "tools/list" {
                let tools: Vec<Value> = self.0.iter().map(|name| json!({"name": name, "original": name})).collect();
                json!({ "tools": tools })
            } else {
                json!({"called": asked["params"]["name"]})
            };
            let text = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
            let answer = Response::builder().header("content-type", "application/json");
            answer.body(Body::Full(text.into())).unwrap()
        }
        .boxed()
    }
}

/// What a client is answered by a server behind the rules.
fn ask(rules: &ToolRules, server: &Server, method: &str, params: &Value) -> Value {
    let layers: [Box<dyn Layer>; 2] =
        [Box::new(ToolLists::new(rules.clone())), Box::new(ToolCalls::new(rules.clone()))];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::builder().method("POST").uri("/mcp").header("content-type", "application/json");
    let upload = Upload::Read(Sent { text: message.to_string().into(), payload: None });
    let peer = Peer { address: ([127, 0, 0, 1], 1).into(), scheme: "http" };
    let limits = Limits::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let exchange = Exchange::new(peer, request.body(upload).unwrap(), &limits);
        let answer = Next::new(&layers, server).pass(exchange).await;
        serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
    })
}

/// Few names, so that rules meet.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn names(least: usize) -> impl Strategy<Value = Vec<String>> {
    let names = NAMES.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    proptest::sample::subsequence(names, least..=NAMES.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What is listed can be called, and is what was listed. What can be called is listed, but for the server's own name of a
    /// tool that is shown under another one: that stays callable where it is not filtered.
    #[test]
    fn what_is_listed_can_be_called_and_what_can_be_called_is_listed(
        tools in names(1),
        filter in names(0),
        // For tools that the server has: a rule for another one could take the name of one that is there.
        renamed in proptest::collection::vec(proptest::option::of(proptest::sample::select(NAMES.to_vec())), NAMES.len()),
        described in proptest::collection::vec(any::<bool>(), NAMES.len()),
    ) {
        let mut overrides = BTreeMap::new();
        for ((tool, name), is_described) in tools.iter().zip(renamed).zip(described) {
            let description = if is_described { "A tool.".to_owned() } else { String::new() };
            let shown = Shown { name: name.unwrap_or_default().to_owned(), description, ..Shown::default() };
            if shown != Shown::default() {
                overrides.insert(tool.clone(), shown);
            }
        }
        let Ok(rules) = ToolRules::new(filter.clone(), overrides.clone()) else { return Ok(()) };
        let server = Server(tools.into_iter().collect());
        let listed = ask(&rules, &server, "tools/list", &json!({}));
        let text = |tool: &Value, member: &str| tool[member].as_str().unwrap().to_owned();
        let listed = listed["result"]["tools"].as_array().unwrap().iter();
        let listed: Vec<(String, String)> = listed.map(|tool| (text(tool, "name"), text(tool, "original"))).collect();
        for name in NAMES {
            let shown: Vec<&str> = listed.iter().filter(|(known, _)| known == name).map(|(_, original)| original.as_str()).collect();
            let answer = ask(&rules, &server, "tools/call", &json!({"name": name}));
            let called = answer["result"]["called"].as_str().filter(|called| server.0.contains(*called));
            let is_own_name = overrides.get(name).is_some_and(|shown| !shown.name.is_empty());
            match called {
                Some(called) if shown.is_empty() => {
                    prop_assert!(is_own_name && called == name, "{} is called as {} and not listed", name, called);
                    prop_assert!(filter.is_empty() || filter.iter().any(|known| known == name));
                }
                Some(called) => prop_assert!(shown.contains(&called), "{} is {:?} and called as {}", name, shown, called),
                None => prop_assert!(shown.is_empty(), "{} is listed and cannot be called: {}", name, answer),
            }
        }
    }
}
