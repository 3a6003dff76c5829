//! Whatever a message holds besides what the protocol needs, and whatever it is called, goes through every kind of proxy
//! byte for byte.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;
use tokio::runtime::Runtime;

use crate::bridge::server::{Server as Process, Setup};
use crate::eras::stands_alone;
use crate::http::{Request, initialize, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// Requests that are sent through each kind of proxy.
const CASES: u32 = 48;
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// JSON in one of the many ways in which it can be written.
fn value() -> impl Strategy<Value = String> {
    let number =
        prop_oneof!["-?(0|[1-9][0-9]{0,25})", "-?(0|[1-9][0-9]{0,5})\\.[0-9]{1,5}", "[1-9][eE][+-]?[0-9]{1,2}"];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), Just("false".to_owned()), number, text(),];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let space = "[ \\t]{0,2}";
        let list = (space, prop::collection::vec(inner.clone(), 0..4))
            .prop_map(|(space, items)| format!("[{space}{}]", items.join(&format!("{space},"))));
        let object = (space, prop::collection::vec((text(), inner), 0..4)).prop_map(|(space, members)| {
            // Each name once.
            let members: std::collections::BTreeMap<String, String> = members
                .into_iter()
                .enumerate()
                .map(|(number, (name, value))| (format!("\"{number}{}", &name[1..]), value))
                .collect();
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}{space}:{space}{value}")).collect();
            format!("{{{space}{}{space}}}", members.join(","))
        });
        prop_oneof![list, object]
    })
}

/// A string, with letters of many kinds, some of them written as numbers.
fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        "[a-z0-9 /.=?-]",
        "[äßλ中\u{a0}\u{200d}\u{fffd}🐝]",
        Just("\\u00e9".to_owned()),
        Just("\\n".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\/".to_owned())
    ];
    prop::collection::vec(letter, 0..8).prop_map(|letters| format!("\"{}\"", letters.concat()))
}

/// Everything that an id may be.
fn id() -> impl Strategy<Value = String> {
    prop_oneof!["-?(0|[1-9][0-9]{0,18})", "[1-9][0-9]{0,3}\\.[0-9]{1,3}", text()]
}

/// What a message says besides what it has to say: a member of its own, one of its parameters, one of `_meta`.
#[derive(Debug, Clone)]
struct Odd {
    id: String,
    member: String,
    arguments: String,
    meta: String,
    result: String,
}

fn odd() -> impl Strategy<Value = Odd> {
    (id(), value(), value(), value(), value()).prop_map(|(id, member, arguments, meta, result)| Odd {
        id,
        member,
        arguments,
        meta,
        result,
    })
}

impl Odd {
    /// A call, with these members of `_meta` as well.
    fn call(&self, id: &str, meta: &str) -> String {
        let Self { member, arguments, meta: own, .. } = self;
        format!(
            r#"{{"jsonrpc":"2.0", "x-odd": {member},"id":{id},"method":"tools/call","params":{{"name":"a","arguments":{{"x":{arguments}}},"_meta":{{"hive/x":{own}{meta}}}}}}}"#
        )
    }

    /// The answer to it, with these members of the result as well.
    fn answer(&self, id: &str, more: &str) -> String {
        let Self { member, result, meta, .. } = self;
        format!(
            r#"{{"jsonrpc":"2.0","x-odd":{member} , "id":{id},"result":{{"content":[{result}],"y": {result},"_meta":{{"hive/y":{meta}}}{more}}}}}"#
        )
    }

    /// The same, if it fails.
    fn error(&self, id: &str) -> String {
        let Self { member, result, .. } = self;
        format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":-31000 ,"message":"m","data":{result}}}, "x-odd":{member},"id": {id}}}"#
        )
    }
}

const CLAIMS: &str =
    r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

fn check(through: impl Fn(&Runtime, &Odd) -> Result<(), TestCaseError>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    runner.run(&odd(), |odd| through(&runtime, &odd)).unwrap_or_else(|failed| panic!("{failed}"));
}

/// A server that answers calls with what was put there, and notes what it got.
fn told<F: Fn(&Seen) -> Reply + Send + Sync + 'static>(
    answer: &Arc<Mutex<String>>,
    other: F,
) -> impl Fn(&Seen) -> Reply + Send + Sync + use<F> {
    let answer = Arc::clone(answer);
    move |seen| match seen.json()["method"].as_str() {
        Some("tools/call") => {
            let id = within(std::str::from_utf8(&seen.body).unwrap(), "id");
            reply(200, &JSON, answer.lock().unwrap().replace("\"ID\"", id))
        }
        _ => other(seen),
    }
}

fn handshake(seen: &Seen) -> Reply {
    let message = seen.json();
    match (seen.method.as_str(), message["method"].as_str()) {
        ("POST", Some("initialize")) => {
            let result = json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            reply(200, &[JSON[0], ("mcp-session-id", "s")], body.to_string())
        }
        ("POST", Some("server/discover")) => reply(400, &[], "what?"),
        _ => reply(202, &[], ""),
    }
}

/// The call that a server got.
fn called(server: &Server) -> String {
    let seen = server.seen().into_iter().find(|seen| seen.json()["method"] == "tools/call").unwrap();
    String::from_utf8(seen.body.to_vec()).unwrap()
}

fn alone(body: String) -> Request {
    modern(1, "tools/call", json!({"name": "a"})).body(body)
}

#[test]
fn what_passes_between_peers_of_one_era_is_not_touched() {
    let answer: Arc<Mutex<String>> = Arc::default();
    let start = Runtime::new().unwrap();
    let (legacy, newer) = start.block_on(async {
        let servers = (Server::start(told(&answer, handshake)).await, Server::start(told(&answer, stands_alone)).await);
        let before = (
            Before::local(Dialect::Streamable, &servers.0.address).await,
            Before::local(Dialect::Streamable, &servers.1.address).await,
        );
        before.0.send(Request::post(&initialize("2025-11-25"))).await;
        ((servers.0, before.0), (servers.1, before.1))
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let sent = odd.call(&odd.id, "");
            let answered = odd.answer(&odd.id, "");
            answer.lock().unwrap().clone_from(&answered);
            let got = legacy.1.send(Request::post(&Value::Null).body(sent.clone()).in_session("s")).await.text().await;
            prop_assert_eq!(called(&legacy.0), sent);
            prop_assert_eq!(&got, &answered);

            let sent = odd.call(&odd.id, CLAIMS);
            let answered = odd.answer(&odd.id, r#","resultType":"complete""#);
            answer.lock().unwrap().clone_from(&answered);
            let got = newer.1.send(alone(sent.clone())).await.text().await;
            prop_assert_eq!(called(&newer.0), sent);
            prop_assert_eq!(got, answered);
            // What has to be said is said, and nothing else is touched.
            let bare = odd.answer(&odd.id, "");
            answer.lock().unwrap().clone_from(&bare);
            let got = newer.1.send(alone(odd.call(&odd.id, CLAIMS))).await.text().await;
            newer.0.seen();
            prop_assert_eq!(got, odd.answer(&odd.id, r#","resultType":"complete""#));
            Ok(())
        })
    });
}

#[test]
fn what_passes_a_bridge_of_eras_keeps_every_other_byte() {
    let answer: Arc<Mutex<String>> = Arc::default();
    let start = Runtime::new().unwrap();
    let (older_server, newer_client, newer_server, older_client, session) = start.block_on(async {
        let (older, newer) =
            (Server::start(told(&answer, handshake)).await, Server::start(told(&answer, stands_alone)).await);
        let newer_client = Before::local(Dialect::Streamable, &older.address).await;
        let older_client = Before::local(Dialect::Streamable, &newer.address).await;
        let opened = older_client.send(Request::post(&initialize("2025-11-25")).plain()).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        (older, newer_client, newer, older_client, session)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            // Ids are the proxy's own on the way to the server, and the client's on the way back.
            answer.lock().unwrap().clone_from(&odd.answer("\"ID\"", ""));
            let got = newer_client.send(alone(odd.call(&odd.id, CLAIMS))).await.text().await;
            let seen = called(&older_server);
            let number = within(&seen, "id");
            prop_assert_eq!(&seen, &odd.call(number, ""));
            prop_assert_eq!(got, odd.answer(&odd.id, r#","resultType":"complete""#));
            answer.lock().unwrap().clone_from(&odd.error("\"ID\""));
            let got = newer_client.send(alone(odd.call(&odd.id, CLAIMS))).await.text().await;
            prop_assert_eq!(got, odd.error(&odd.id));
            older_server.seen();

            answer.lock().unwrap().clone_from(&odd.answer("\"ID\"", r#","resultType":"complete""#));
            let post = Request::post(&Value::Null).body(odd.call(&odd.id, "")).in_session(&session).plain();
            let got = older_client.send(post).await.text().await;
            let seen = called(&newer_server);
            let number = within(&seen, "id");
            let client = format!(
                r#","io.modelcontextprotocol/clientInfo":{{"name":"skep","version":"{}"}}"#,
                env!("CARGO_PKG_VERSION")
            );
            prop_assert_eq!(&seen, &odd.call(number, &format!("{CLAIMS}{client}")));
            prop_assert_eq!(got, odd.answer(&odd.id, ""));
            answer.lock().unwrap().clone_from(&odd.error("\"ID\""));
            let post = Request::post(&Value::Null).body(odd.call(&odd.id, "")).in_session(&session).plain();
            prop_assert_eq!(older_client.send(post).await.text().await, odd.error(&odd.id));
            newer_server.seen();
            Ok(())
        })
    });
}

/// A member of a message, as it was written.
fn within<'a>(message: &'a str, name: &str) -> &'a str {
    let found = skep_mcp::json::find(message, &[name]).ok().flatten();
    found.unwrap_or_else(|| panic!("no {name}: {message}")).of(message)
}

#[test]
fn what_passes_a_process_keeps_every_other_byte() {
    let start = Runtime::new().unwrap();
    let (setup, process, session) = start.block_on(async {
        let mut setup = Setup::streamable().await;
        let (process, session) = setup.begin().await;
        (setup, tokio::sync::Mutex::new(process), session)
    });
    check(|runtime, odd| {
        runtime.block_on(async {
            let post = Request::post(&Value::Null).body(odd.call(&odd.id, "")).in_session(&session).plain();
            let mut process = process.lock().await;
            let (mut got, seen) = tokio::join!(setup.send(post), answer_line(&mut process, odd));
            let number = within(&seen, "id");
            prop_assert_eq!(&seen, &odd.call(number, ""));
            prop_assert_eq!(got.text().await, odd.answer(&odd.id, ""));
            Ok(())
        })
    });
}

/// Answers the call that comes next, and gives it as it came.
async fn answer_line(process: &mut Process, odd: &Odd) -> String {
    let line = process.line().await;
    process.write_line(&odd.answer(within(&line, "id"), "")).await;
    line
}
