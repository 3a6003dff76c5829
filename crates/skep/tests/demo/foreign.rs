//! What clients of one revision do with a server that somebody else wrote.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::Feature::{Cancellation, Changes, Logs, Questions};
use crate::peer::{Peer, STATELESS};

/// Far longer than a server takes to notice that a request was called off, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// What not every server has, or not towards every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// It asks the client.
    Questions,
    /// It logs to the client.
    Logs,
    /// It says that its tools have changed.
    Changes,
    /// It notices that a request was called off.
    Cancellation,
}

/// What a server has towards clients of sessions, and towards those whose requests stand alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Has {
    pub(crate) sessions: &'static [Feature],
    pub(crate) alone: &'static [Feature],
}

impl Has {
    pub(crate) const ALL: Self =
        Self { sessions: &[Questions, Logs, Changes, Cancellation], alone: &[Questions, Logs, Changes, Cancellation] };
    /// It tells changes only to the session in which they happen, or tells them without having promised that.
    pub(crate) const CHANGES_WITHIN_SESSIONS: Self =
        Self { sessions: &[Questions, Logs, Changes, Cancellation], alone: &[Questions, Logs, Cancellation] };
    pub(crate) const MORE_FOR_SESSIONS: Self = Self { sessions: &[Questions, Logs, Cancellation], alone: &[Questions] };
    pub(crate) const NO_NOTIFICATIONS: Self = Self { sessions: &[Questions, Cancellation], alone: &[Questions] };

    fn towards(self, peer: &Peer) -> &'static [Feature] {
        if peer.is_stateless() { self.alone } else { self.sessions }
    }

    /// The same of a process on lines: one that clients share can neither ask nor log.
    fn on_lines(self, peer: &Peer) -> Vec<Feature> {
        let is_shared = peer.is_stateless();
        let is_unshared = |feature: &Feature| match feature {
            Questions => !is_shared || peer.server == STATELESS,
            Logs => !is_shared,
            Changes | Cancellation => true,
        };
        self.towards(peer).iter().copied().filter(is_unshared).collect()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn call(peer: &mut Peer, name: &str, arguments: &Value) -> Value {
    peer.result("tools/call", &json!({"name": name, "arguments": arguments}))
}

/// Uses every feature that a server on HTTP has.
pub(crate) fn check_server(peer: &mut Peer, has: Has) {
    let has = has.towards(peer);
    check(peer, has);
}

/// Uses every feature that a process on lines has.
pub(crate) fn check_process(peer: &mut Peer, has: Has) {
    let has = has.on_lines(peer);
    check(peer, &has);
}

fn check(peer: &mut Peer, has: &[Feature]) {
    eprintln!("a client of {}, which has {has:?}", peer.revision);
    let tools = peer.result("tools/list", &json!({}));
    let names: Vec<&Value> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    for name in ["echo", "greet", "steps"] {
        assert!(names.contains(&&json!(name)), "{names:?}");
    }
    assert_eq!(text(&call(peer, "echo", &json!({"message": "hum"}))), "hum");
    check_the_rest_of_the_catalog(peer);
    check_progress(peer);
    if has.contains(&Questions) && peer.oldest() >= "2025-06-18" {
        assert_eq!(text(&call(peer, "greet", &json!({}))), "Hello, Ada!");
    }
    if has.contains(&Changes) {
        check_changes(peer);
    }
    if has.contains(&Cancellation) {
        check_cancellation(peer);
    }
    if has.contains(&Logs) {
        check_logs(peer);
    }
}

fn check_the_rest_of_the_catalog(peer: &mut Peer) {
    assert_eq!(peer.result("resources/list", &json!({}))["resources"][0]["uri"], "sdk://greeting");
    assert_eq!(peer.result("resources/read", &json!({"uri": "sdk://greeting"}))["contents"][0]["text"], "Hello!");
    assert_eq!(peer.result("prompts/list", &json!({}))["prompts"][0]["name"], "hello");
    let hello = json!({"name": "hello", "arguments": {"name": "Ada"}});
    assert_eq!(peer.result("prompts/get", &hello)["messages"][0]["content"]["text"], "Greet Ada.");
    let complete = json!({"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "name", "value": "A"}});
    assert_eq!(peer.result("completion/complete", &complete)["completion"]["values"], json!(["Ada", "Alan"]));
}

fn check_progress(peer: &mut Peer) {
    let steps = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "p"}});
    let messages = peer.ask("tools/call", &steps);
    let told = messages.iter().filter(|message| message["method"] == "notifications/progress");
    let told: Vec<(f64, &Value)> = told
        .map(|message| (message["params"]["progress"].as_f64().unwrap(), &message["params"]["progressToken"]))
        .collect();
    assert_eq!(told, [(1.0, &json!("p")), (2.0, &json!("p"))]);
}

fn check_logs(peer: &mut Peer) {
    if peer.is_stateless() {
        peer.meta["io.modelcontextprotocol/logLevel"] = json!("info");
    } else {
        // A server without levels logs as it likes.
        peer.ask("logging/setLevel", &json!({"level": "info"}));
    }
    let messages = peer.ask("tools/call", &json!({"name": "log", "arguments": {}}));
    let logged: Vec<&Value> = messages.iter().map(|message| &message["params"]["data"]).collect();
    assert_eq!(logged, [&json!("loud"), &Value::Null]);
}

fn check_changes(peer: &mut Peer) {
    const CHANGED: &str = "notifications/tools/list_changed";
    if peer.is_stateless() {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let (_, stream) = peer.begin("subscriptions/listen", &wanted);
        let mut stream = stream.unwrap();
        let acknowledged = stream.message().unwrap();
        assert_eq!(acknowledged["params"]["notifications"]["toolsListChanged"], true, "{acknowledged}");
        call(peer, "change", &json!({}));
        assert_eq!(stream.message().unwrap()["method"], CHANGED);
    } else {
        peer.listen();
        call(peer, "change", &json!({}));
        peer.wait_for(CHANGED);
    }
}

fn check_cancellation(peer: &mut Peer) {
    let count = |peer: &mut Peer| text(&call(peer, "called-off", &json!({}))).parse::<u64>().unwrap();
    let before = count(peer);
    let wait = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": "w"}});
    let (id, mut stream) = peer.begin("tools/call", &wait);
    let is_begun = |message: &Value| message["params"]["progressToken"] == "w";
    match stream.as_mut() {
        Some(stream) => assert!(is_begun(&stream.message().unwrap())),
        // On HTTP+SSE what other calls were told comes on the same stream.
        None => while !is_begun(&peer.wait_for("notifications/progress")) {},
    }
    if !peer.is_stateless() {
        peer.notify("notifications/cancelled", &json!({"requestId": id}));
    }
    // Closing the stream is the way to call off a request that stands alone.
    drop(stream);
    let begun = Instant::now();
    while count(peer) == before {
        assert!(begun.elapsed() < PATIENCE, "the server was not told");
    }
}
