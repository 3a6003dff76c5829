//! What clients of one revision do with a server that somebody else wrote.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::Feature::{Cancellation, Changes, Logs, Questions, Roots};
use crate::peer::{Peer, STATELESS};

/// Far longer than a server takes to notice that a request was called off, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// What not every server has, or not towards every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// It asks the client.
    Questions,
    /// It asks for the roots of the client.
    Roots,
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
    pub(crate) const ALL: Self = Self {
        sessions: &[Questions, Roots, Logs, Changes, Cancellation],
        alone: &[Questions, Roots, Logs, Changes, Cancellation],
    };
    pub(crate) const ALL_BUT_CHANGES: Self =
        Self { sessions: &[Questions, Roots, Logs, Cancellation], alone: &[Questions, Roots, Logs, Cancellation] };
    /// It tells changes only to the session in which they happen, or tells them without having promised that.
    pub(crate) const CHANGES_WITHIN_SESSIONS: Self = Self {
        sessions: &[Questions, Roots, Logs, Changes, Cancellation],
        alone: &[Questions, Roots, Logs, Cancellation],
    };
    /// The same, and it asks for roots on the stream that a client of sessions listens on, and not on that of the call. Our
    /// client hears one of them at a time.
    pub(crate) const ROOTS_BESIDE_CALLS: Self =
        Self { sessions: &[Questions, Logs, Changes, Cancellation], alone: &[Questions, Roots, Logs, Cancellation] };
    pub(crate) const MORE_FOR_SESSIONS: Self =
        Self { sessions: &[Questions, Roots, Logs, Cancellation], alone: &[Questions, Roots] };
    pub(crate) const NO_NOTIFICATIONS: Self =
        Self { sessions: &[Questions, Roots, Cancellation], alone: &[Questions, Roots] };

    /// What it has towards a client whose requests stand alone, or one that has sessions.
    pub(crate) fn towards(self, is_stateless: bool) -> &'static [Feature] {
        if is_stateless { self.alone } else { self.sessions }
    }

    /// The same of a process on lines. One that clients without sessions share can neither ask nor log, unless it has no
    /// sessions itself.
    pub(crate) fn on_lines(self, is_stateless: bool, knows_stateless: bool) -> Vec<Feature> {
        let is_unshared = |feature: &Feature| match feature {
            Questions | Roots => !is_stateless || knows_stateless,
            Logs => !is_stateless,
            Changes | Cancellation => true,
        };
        self.towards(is_stateless).iter().copied().filter(is_unshared).collect()
    }
}

/// What clients of others are told to try.
pub(crate) fn words(has: &[Feature]) -> String {
    let word = |feature: &Feature| match feature {
        Questions => "questions",
        Roots => "roots",
        Logs => "logs",
        Changes => "changes",
        Cancellation => "cancellation",
    };
    has.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn call(peer: &mut Peer, name: &str, arguments: &Value) -> Value {
    peer.result("tools/call", &json!({"name": name, "arguments": arguments}))
}

/// Uses every feature that a server on HTTP has.
pub(crate) fn check_server(peer: &mut Peer, has: Has) {
    let has = has.towards(peer.is_stateless());
    check(peer, has);
}

/// Uses every feature that a process on lines has.
pub(crate) fn check_process(peer: &mut Peer, has: Has) {
    let has = has.on_lines(peer.is_stateless(), peer.server == STATELESS);
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
    if has.contains(&Roots) {
        assert_eq!(text(&call(peer, "roots", &json!({}))), "file:///hive");
    }
    if !peer.is_stateless() {
        assert_eq!(peer.result("ping", &json!({})), json!({}));
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
    let templates = peer.result("resources/templates/list", &json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "sdk://greeting/{name}");
    assert_eq!(
        peer.result("resources/read", &json!({"uri": "sdk://greeting/Ada"}))["contents"][0]["text"],
        "Hello, Ada!"
    );
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
