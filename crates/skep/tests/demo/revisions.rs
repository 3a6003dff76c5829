//! Every revision on every transport that it has, by one table.

use serde_json::{Value, json};

use crate::http::Response;
use crate::peer::{Peer, STATELESS};

pub(crate) const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS];

/// Runs a check in every cell of the table.
fn everywhere(check: impl Fn(&mut Peer)) {
    for revision in REVISIONS {
        for transport in ["stdio", "sse", "streamable-http"] {
            // HTTP+SSE is a transport of sessions.
            if (transport, revision) != ("sse", STATELESS) {
                eprintln!("{revision} on {transport}");
                let mut peer = Peer::connect(transport, revision);
                check(&mut peer);
                assert!(peer.close());
            }
        }
    }
}

fn call(peer: &mut Peer, name: &str, arguments: &Value) -> Value {
    peer.result("tools/call", &json!({"name": name, "arguments": arguments}))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn tools_answer_in_the_words_of_the_revision() {
    everywhere(check_tools);
}

pub(crate) fn check_tools(peer: &mut Peer) {
    let has_structure = peer.server >= "2025-06-18";
    let tools = peer.result("tools/list", &json!({}));
    let add = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "add").unwrap();
    assert_eq!(add.get("outputSchema").is_some(), has_structure);
    assert_eq!(tools.get("ttlMs").is_some(), peer.is_stateless());

    assert_eq!(text(&call(peer, "echo", &json!({"message": "héllo\n🐝"}))), "héllo\n🐝");
    let sum = call(peer, "add", &json!({"a": 2, "b": 0.5}));
    assert_eq!((text(&sum), sum["structuredContent"]["sum"].as_f64()), ("2.5", has_structure.then_some(2.5)));
    assert!(text(&call(peer, "time", &json!({}))).ends_with('Z'));
    assert_eq!(text(&call(peer, "slow", &json!({"seconds": 0}))), "answered after 0 s");
    assert_eq!(text(&call(peer, "big", &json!({"bytes": 300_000}))).len(), 300_000);

    let failed = call(peer, "fail", &json!({"message": "as wished"}));
    assert_eq!((text(&failed), &failed["isError"]), ("as wished", &json!(true)));
    assert_eq!(call(peer, "add", &json!({"a": "x"}))["isError"], true);
    assert_eq!(peer.error("tools/call", &json!({"name": "no such tool"})), -32602);

    let sound = call(peer, "test_audio_content", &json!({}));
    assert_eq!(sound["content"][0]["type"], if peer.oldest() == "2024-11-05" { "resource" } else { "audio" });
}

#[test]
fn answers_may_be_large() {
    everywhere(check_large);
}

pub(crate) fn check_large(peer: &mut Peer) {
    assert_eq!(text(&call(peer, "big", &json!({"bytes": 3_000_000}))).len(), 3_000_000);
}

#[test]
fn progress_comes_before_the_answer() {
    everywhere(check_progress);
}

pub(crate) fn check_progress(peer: &mut Peer) {
    let mut progress = json!({"name": "progress", "arguments": {"steps": 3, "milliseconds": 1}});
    assert_eq!(peer.ask("tools/call", &progress).len(), 1);
    progress["_meta"] = json!({"progressToken": "p"});
    let messages = peer.ask("tools/call", &progress);
    let steps: Vec<&Value> = messages.iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(steps, [&json!(1), &json!(2), &json!(3), &Value::Null]);
    assert_eq!(messages[0]["params"]["progressToken"], "p");
}

#[test]
fn log_messages_come_before_the_answer() {
    everywhere(check_logs);
}

pub(crate) fn check_logs(peer: &mut Peer) {
    if peer.is_stateless() {
        let silent = peer.ask("tools/call", &json!({"name": "log", "arguments": {"level": "alert", "message": "m"}}));
        assert_eq!(silent.len(), 1);
        peer.meta["io.modelcontextprotocol/logLevel"] = json!("warning");
    } else {
        assert_eq!(peer.result("logging/setLevel", &json!({"level": "warning"})), json!({}));
    }
    let mut log = |level: &str| {
        peer.ask("tools/call", &json!({"name": "log", "arguments": {"level": level, "message": "m"}})).len()
    };
    assert_eq!((log("info"), log("warning"), log("error")), (1, 2, 2));
}

#[test]
fn the_server_asks_its_client() {
    everywhere(check_questions);
}

pub(crate) fn check_questions(peer: &mut Peer) {
    assert_eq!(text(&call(peer, "sampling", &json!({"prompt": "what hums?"}))), "bees");
    if peer.oldest() >= "2025-06-18" {
        assert_eq!(text(&call(peer, "elicitation", &json!({}))), "Hello, Ada!");
        assert_eq!(text(&call(peer, "test_input_required_result_multi_round", &json!({}))), "Ada likes yellow.");
        let prompt = peer.result("prompts/get", &json!({"name": "test_input_required_result_prompt"}));
        assert_eq!(prompt["messages"][0]["content"]["text"], "Use this context: hives");
    } else if peer.server == STATELESS {
        // The server cannot go on, and says so in a way that has no word in the client's revision.
        assert_eq!(peer.error("tools/call", &json!({"name": "elicitation"})), -32603);
    } else {
        assert_eq!(call(peer, "elicitation", &json!({}))["isError"], true);
    }
    let roots = call(peer, "test_input_required_result_list_roots", &json!({}));
    assert_eq!(text(&roots), "Roots: file:///hive");
}

#[test]
fn resources_prompts_and_completion() {
    everywhere(check_resources_and_prompts);
}

pub(crate) fn check_resources_and_prompts(peer: &mut Peer) {
    let read = |peer: &mut Peer, uri: &str| peer.result("resources/read", &json!({"uri": uri}))["contents"][0].clone();
    assert_eq!(read(peer, "demo://greeting/Grace")["text"], "Hello, Grace!");
    assert_eq!(read(peer, "test://static-binary")["mimeType"], "image/png");
    let unknown = if peer.is_stateless() { -32602 } else { -32002 };
    assert_eq!(peer.error("resources/read", &json!({"uri": "demo://nothing"})), unknown);
    assert_eq!(peer.error("resources/list", &json!({"cursor": "x"})), -32602);
    assert!(!peer.result("resources/templates/list", &json!({}))["resourceTemplates"].as_array().unwrap().is_empty());

    let greet = json!({"name": "greet", "arguments": {"name": "Ada", "language": "french"}});
    assert_eq!(peer.result("prompts/get", &greet)["messages"][0]["content"]["text"], "Please greet Ada in french.");
    assert_eq!(peer.error("prompts/get", &json!({"name": "greet"})), -32602);

    let mut complete =
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}});
    assert_eq!(peer.result("completion/complete", &complete)["completion"]["values"], json!(["Ada", "Alan"]));
    if peer.revision >= "2025-06-18" {
        complete["context"] = json!({"arguments": {"language": "french"}});
        let names = peer.result("completion/complete", &complete)["completion"]["values"].clone();
        // Servers before that revision have no word for it.
        assert_eq!(names, if peer.server >= "2025-06-18" { json!(["Amélie"]) } else { json!(["Ada", "Alan"]) });
    }
}

#[test]
fn changes_are_told_to_those_who_asked() {
    everywhere(check_changes);
}

const UPDATED: &str = "notifications/resources/updated";
/// The lists that change, each with the tool that changes it.
const LISTS: [(&str, &str); 3] = [
    ("test_trigger_tool_change", "notifications/tools/list_changed"),
    ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
    ("test_trigger_resource_change", "notifications/resources/list_changed"),
];

pub(crate) fn check_changes(peer: &mut Peer) {
    if peer.is_stateless() {
        let wanted = json!({"resourceSubscriptions": ["demo://counter", "demo://nothing"], "toolsListChanged": true});
        let mut first = Subscription::begin(peer, &wanted);
        let honoured = json!({"resourceSubscriptions": ["demo://counter"], "toolsListChanged": true});
        first.is_told(peer, ACKNOWLEDGED, json!({"notifications": honoured}));
        let wanted = json!({"promptsListChanged": true, "resourcesListChanged": true});
        let mut second = Subscription::begin(peer, &wanted);
        second.is_told(peer, ACKNOWLEDGED, json!({"notifications": wanted}));
        // Neither is told what only the other one has asked for.
        for (trigger, told) in LISTS {
            call(peer, trigger, &json!({}));
            let asked = if told.contains("/tools/") { &mut first } else { &mut second };
            asked.is_told(peer, told, json!({}));
        }
        call(peer, "touch", &json!({}));
        first.is_told(peer, UPDATED, json!({"uri": "demo://counter"}));
    } else {
        // A process that clients share tells those who listen.
        peer.listen();
        assert_eq!(peer.result("resources/subscribe", &json!({"uri": "demo://counter"})), json!({}));
        call(peer, "touch", &json!({}));
        assert_eq!(peer.wait_for(UPDATED)["params"], json!({"uri": "demo://counter"}));
        assert_eq!(peer.result("resources/unsubscribe", &json!({"uri": "demo://counter"})), json!({}));
        call(peer, "touch", &json!({}));
        for (trigger, told) in LISTS {
            call(peer, trigger, &json!({}));
            peer.wait_for(told);
        }
    }
    assert_eq!(text(&call(peer, "extra_tool", &json!({}))), "This tool comes and goes.");
    let prompt = peer.result("prompts/get", &json!({"name": "extra_prompt"}));
    assert_eq!(prompt["messages"][0]["content"]["text"], "This prompt comes and goes.");
    let resource = peer.result("resources/read", &json!({"uri": "demo://extra"}));
    assert_eq!(resource["contents"][0]["text"], "This resource comes and goes.");
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// What a client that stands alone has asked to be told.
struct Subscription {
    id: Value,
    /// Where it is told, unless there is one place for everything.
    stream: Option<Response>,
}

impl Subscription {
    fn begin(peer: &mut Peer, wanted: &Value) -> Self {
        let (id, stream) = peer.begin("subscriptions/listen", &json!({"notifications": wanted}));
        Self { id, stream }
    }

    /// The next that it is told is this.
    fn is_told(&mut self, peer: &mut Peer, method: &str, mut params: Value) {
        let told = match &mut self.stream {
            Some(stream) => stream.message().unwrap(),
            None => peer.wait_for(method),
        };
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": self.id});
        assert_eq!((&told["method"], &told["params"]), (&json!(method), &params));
    }
}

#[test]
fn a_request_that_is_called_off_is_not_answered() {
    everywhere(check_cancellation);
}

pub(crate) fn check_cancellation(peer: &mut Peer) {
    let slow = json!({"name": "slow", "arguments": {"seconds": 600}, "_meta": {"progressToken": 1}});
    let (id, stream) = peer.begin("tools/call", &slow);
    if let Some(mut stream) = stream {
        assert_eq!(stream.message().unwrap()["method"], "notifications/progress");
        // Closing the stream is the way to call off a request that stands alone.
        if !peer.is_stateless() {
            peer.notify("notifications/cancelled", &json!({"requestId": id}));
            assert_eq!(stream.message(), None);
        }
    } else {
        peer.wait_for("notifications/progress");
        peer.notify("notifications/cancelled", &json!({"requestId": id}));
    }
    // An answer to the request that was called off would come before this one.
    let later = json!({"name": "progress", "arguments": {"steps": 1, "milliseconds": 100}});
    let messages = peer.ask("tools/call", &later);
    assert!(messages.iter().all(|message| message["id"] != id));
}

#[test]
fn methods_of_other_revisions_are_not_there() {
    everywhere(check_methods);
}

pub(crate) fn check_methods(peer: &mut Peer) {
    assert_eq!(peer.error("no/such/method", &json!({})), -32601);
    if peer.is_stateless() {
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
            assert_eq!(peer.error(method, &json!({})), -32601, "{method}");
        }
        let discovered = peer.result("server/discover", &json!({}));
        assert_eq!(discovered["supportedVersions"].as_array().unwrap().len(), REVISIONS.len());
    } else {
        assert_eq!(peer.result("ping", &json!({})), json!({}));
        assert_eq!(peer.error("server/discover", &json!({})), -32601);
        assert_eq!(peer.error("subscriptions/listen", &json!({"notifications": {}})), -32601);
    }
}

#[test]
fn one_revision_has_batches() {
    everywhere(check_batches);
}

pub(crate) fn check_batches(peer: &mut Peer) {
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "echo", "arguments": {"message": "m"}}},
    ]);
    let answer = peer.raw(&batch);
    if peer.revision == "2025-03-26" {
        let ids: Vec<&Value> = answer.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(answer[1]["result"]["content"][0]["text"], "m");
        assert_eq!(peer.raw(&json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]))["error"]["code"], -32600);
        assert_eq!(peer.raw(&json!([]))["error"]["code"], -32600);
    } else {
        assert_eq!(answer["error"]["code"], -32600);
    }
}
