//! What is written in manifests is what clients meet: the layers of proxies from end to end, each by itself and all at
//! once, with a provider, a Redis and a reader of metrics that others wrote.

mod accounts;
mod callers;
mod elsewhere;
mod events;
mod objects;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use skep_conformance::redis;

use self::accounts::Accounts;
use self::callers::Callers;
use crate::http::Request;
use crate::place::{Place, eventually};
use crate::protected::{Begin, Client, KEY, first_word, signed_with};
use crate::provider::{self, AUDIENCE};
use crate::readers::{Reader, sample};

/// How many calls a bucket is good for.
const TOOL_LIMIT: usize = 4;

/// What others wrote and this needs.
pub(crate) struct Needs {
    reader: Reader,
    packages: PathBuf,
}

impl Needs {
    /// Nothing when this machine cannot have them; then the test is recorded as skipped.
    pub(crate) fn get(test: &str) -> Option<Self> {
        let (reader, packages) = (Reader::get(test)?, provider::install(test)?);
        redis::is_installed(test).then_some(Self { reader, packages })
    }
}

/// Everything, at one place.
pub(crate) async fn check(place: &Place, needs: &Needs) {
    let callers = Callers::start(place, &needs.packages).await;
    let accounts = Accounts::start(place).await;
    let (keeper, anybody) = (Some(callers.keeper.as_str()), None);
    let mut workloads = vec![
        (objects::proved(), keeper),
        (objects::watched(), anybody),
        (objects::everything("everything", "streamable-http"), keeper),
        (objects::everything("events", "sse"), keeper),
        (objects::everything("lines", "stdio"), keeper),
        (objects::accounts(), Some(accounts.bee.as_str())),
        (objects::fixed(), anybody),
    ];
    workloads.extend(elsewhere::workloads().into_iter().map(|workload| (workload, keeper)));
    let served = Served::start(place, &workloads).await;
    tokens_say_who_calls_and_what_for(served.address("proved"), &callers);
    roles_of_tokens_decide(served.address("proved"), &callers);
    tools_are_shown_counted_and_told_about(served.address("watched"), needs);
    all_at_once(&served, "everything", Client::begin_as, &callers, needs);
    all_at_once(&served, "events", Client::listen_as, &callers, needs);
    all_at_once(&served, "lines", Client::begin_as, &callers, needs);
    events::check(served.address("events"), &callers);
    is_recorded(place, &served.0["watched"].0, None).await;
    for name in ["everything", "events", "lines"] {
        is_recorded(place, &served.0[name].0, Some("keeper")).await;
    }
    elsewhere::check(&served, &callers);
    accounts::check(place, served.address("accounts"), &accounts, &callers).await;
}

/// Workloads and where they are, by their names.
struct Served(BTreeMap<String, (Value, String)>);

impl Served {
    /// Applies all of them, and waits until each answers somebody.
    async fn start(place: &Place, workloads: &[(Value, Option<&str>)]) -> Self {
        let mut served = BTreeMap::new();
        for (workload, _) in workloads {
            let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
            served.insert(name, (workload.clone(), place.serve(workload).await));
        }
        let served = Self(served);
        for (workload, token) in workloads {
            let address = served.address(workload["metadata"]["name"].as_str().unwrap());
            place.until_served(workload, address, *token).await;
        }
        served
    }

    fn address(&self, name: &str) -> &str {
        &self.0[name].1
    }
}

fn add(client: &Client<'_>, number: i32) -> (u16, Value) {
    let (status, answer) = client.call("add", &json!({"a": number, "b": 3}));
    (status, answer["result"]["structuredContent"]["sum"].clone())
}

/// Nobody gets in without a token of the provider that is meant for this server.
fn tokens_say_who_calls_and_what_for(address: &str, callers: &Callers) {
    let nobody = first_word(None).send(address);
    let challenge = nobody.header("www-authenticate").unwrap_or_default();
    assert_eq!(nobody.status, 401);
    assert!(challenge.contains("resource_metadata=") && challenge.contains("scope=\"mcp\""), "{challenge}");
    let mut refused = first_word(Some(&callers.elsewhere)).send(address);
    assert_eq!((refused.status, refused.text().contains("invalid audience")), (401, true));
    let forged = callers.keeper.chars().rev().collect::<String>();
    assert_eq!(first_word(Some(&forged)).send(address).status, 401);
    let document = Request::new("GET", "/.well-known/oauth-protected-resource").send(address).json();
    assert_eq!(
        (&document["resource"], &document["authorization_servers"]),
        (&json!(AUDIENCE), &json!([objects::ISSUER]))
    );
    let opaque = Client::begin_as(address, Some(&callers.opaque)).unwrap();
    assert_eq!(add(&opaque, 2), (200, json!(5)), "the provider was asked about it");
}

/// Policies go by the groups in tokens.
fn roles_of_tokens_decide(address: &str, callers: &Callers) {
    let keeper = Client::begin_as(address, Some(&callers.keeper)).unwrap();
    assert_eq!(keeper.tools(), ["add", "echo"]);
    assert_eq!(add(&keeper, 2), (200, json!(5)));
    assert_eq!(keeper.call("sampling", &json!({"prompt": "?"})).0, 403);
    let guest = Client::begin_as(address, Some(&callers.guest)).unwrap();
    assert_eq!(guest.tools(), [""; 0]);
    let (status, refused) = guest.call("add", &json!({"a": 2, "b": 3}));
    assert_eq!((status, &refused["error"]["message"]), (403, &json!("Unauthorized")), "{refused}");
}

/// A tool that is not shown is not there, whoever asks.
fn is_hidden(client: &Client<'_>, tool: &str) {
    let (status, answer) = client.call(tool, &json!({"message": "?"}));
    let error = json!({"code": -32602, "message": "tool not found"});
    assert_eq!((status, &answer["error"]), (200, &error), "{tool}: {answer}");
}

/// The value of what is counted about a tool.
fn counted(address: &str, needs: &Needs, server: &str, tool: &str, status: &str) -> u64 {
    let page = needs.reader.page(&Request::new("GET", "/metrics").send(address).text());
    let labels = [("server", server), ("tool", tool), ("status", status)];
    sample(&page, "toolhive_mcp_tool_calls_total", &labels).as_u64().unwrap()
}

/// Fills a bucket's rest with calls that succeed, and makes one more.
fn one_too_many(client: &Client<'_>, made: usize) {
    for _ in made..TOOL_LIMIT {
        assert_eq!(add(client, 2), (200, json!(5)));
    }
    is_too_much(client, "add", &json!({"a": 2, "b": 3}));
}

/// A call is refused because its bucket is empty.
fn is_too_much(client: &Client<'_>, tool: &str, arguments: &Value) {
    let refused = client.send("tools/call", &json!({"name": tool, "arguments": arguments}));
    let wait = refused.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(refused.status == 429 && wait.is_some_and(|seconds| seconds > 60), "{} {wait:?}", refused.status);
}

fn tools_are_shown_counted_and_told_about(address: &str, needs: &Needs) {
    let anybody = Client::begin(address).unwrap();
    assert_eq!(anybody.tools(), ["add", "say"]);
    let say = anybody.listed().into_iter().find(|tool| tool["name"] == "say").unwrap();
    assert_eq!(say["annotations"]["title"], "Say it", "{say}");
    let (status, said) = anybody.call("say", &json!({"message": "as it is"}));
    assert_eq!((status, &said["result"]["content"][0]["text"]), (200, &json!("as it is")), "{said}");
    is_too_much(&anybody, "say", &json!({"message": "again"}));
    for tool in ["echo", "sampling"] {
        is_hidden(&anybody, tool);
    }
    one_too_many(&anybody, 1);
    assert_eq!(counted(address, needs, "watched", "add", "success"), 3);
    assert_eq!(counted(address, needs, "watched", "echo", "success"), 1, "by the name that the server knows");
}

fn all_at_once(served: &Served, name: &str, begin: Begin, callers: &Callers, needs: &Needs) {
    let address = served.address(name);
    assert_eq!(first_word(None).send(address).status, 401);
    let guest = begin(address, Some(&callers.guest)).unwrap();
    assert_eq!(guest.tools(), [""; 0]);
    assert_eq!(add(&guest, 2).0, 403);
    let keeper = begin(address, Some(&callers.keeper)).unwrap();
    assert_eq!(keeper.tools(), ["add", "say"]);
    let (status, said) = keeper.call("say", &json!({"message": "as it was"}));
    assert_eq!((status, &said["result"]["content"][0]["text"]), (200, &json!(signed_with(KEY))), "{said}");
    is_too_much(&keeper, "say", &json!({"message": "again"}));
    is_hidden(&keeper, "echo");
    let (status, refused) = keeper.call("add", &json!({"a": 13, "b": 3}));
    assert_eq!((status, &refused["error"]["message"]), (403, &json!("Request denied by policy")), "{refused}");
    one_too_many(&keeper, 2);
    let helper = begin(address, Some(&callers.helper)).unwrap();
    assert_eq!(add(&helper, 2), (200, json!(5)), "everybody has a bucket of their own");
    assert_eq!(counted(address, needs, name, "add", "success"), 3);
}

/// The log of a proxy has records of what went well and what did not, with who asked for what, and no token.
async fn is_recorded(place: &Place, workload: &Value, caller: Option<&str>) {
    eventually("calls are recorded", || async {
        let log = place.printed(workload).await;
        let records: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let has = |outcome: &str| {
            records.iter().any(|record| {
                record["type"] == "mcp_tool_call"
                    && record["outcome"] == outcome
                    && record["target"]["name"] == "add"
                    && caller.is_none_or(|caller| record["subjects"]["user_id"] == caller)
            })
        };
        assert!(!log.contains("Bearer ") && !log.contains("eyJ"), "a token is told: {log}");
        if has("success") && has("failure") { Ok(()) } else { Err(log) }
    })
    .await;
}
