//! Who may do what, seen from both ends: what clients are told, and what reaches the server.

mod caller;
mod lists;
mod matrix;
mod pages;
mod pdp;
mod records;
mod told;
pub(crate) mod tricks;
mod way;

use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Authorizer, CedarSettings, Chain, Step};
use skep_proxy::transparent::Dialect;

use crate::http::Request;
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// What a keeper may: one tool, one prompt, one resource, and every tool that only reads.
const POLICIES: [&str; 4] = [
    r#"permit(principal in THVGroup::"keepers", action == Action::"call_tool", resource == Tool::"weigh");"#,
    r#"permit(principal in THVGroup::"keepers", action == Action::"get_prompt", resource == Prompt::"greet");"#,
    r#"permit(principal in THVGroup::"keepers", action == Action::"read_resource", resource == Resource::"hive://1");"#,
    r#"permit(principal in THVGroup::"keepers", action, resource) when { resource has readOnlyHint && resource.readOnlyHint };"#,
];

/// An authorizer for which everybody who calls is in these groups.
fn authorizer(groups: &[&str]) -> Authorizer {
    let parents: Vec<Value> = groups.iter().map(|group| json!({"type": "THVGroup", "id": group})).collect();
    let caller = json!([{"uid": {"type": "Client", "id": "anonymous"}, "attrs": {}, "parents": parents}]);
    Authorizer::cedar(CedarSettings {
        policies: POLICIES.map(str::to_owned).to_vec(),
        entities: caller.to_string(),
        server: "hive".to_owned(),
        ..CedarSettings::default()
    })
    .unwrap()
}

fn steps(authorizer: Authorizer) -> Vec<Step> {
    vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, Step::Authorize(authorizer)]
}

/// A proxy with a chain before a server.
pub(crate) async fn guarded(server: &Server, dialect: Dialect, steps: Vec<Step>) -> Before {
    let (before, middleware) = Before::chained(server, dialect).await;
    middleware.replace(Chain::new(steps));
    before
}

/// A server of both eras with tools, prompts and resources, which does whatever it is asked to.
pub(crate) fn hive(seen: &Seen) -> Reply {
    let json = [("content-type", "application/json")];
    let message = seen.json();
    let answer = |message: &Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result(message)});
    match &message {
        Value::Array(messages) => reply(200, &json, Value::Array(messages.iter().map(answer).collect()).to_string()),
        Value::Object(_) if message["id"].is_null() => reply(202, &[], ""),
        Value::Object(_) => reply(200, &json, answer(&message).to_string()),
        _ => reply(204, &[], ""),
    }
}

fn result(message: &Value) -> Value {
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}}),
        "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
        "tools/list" => json!({"tools": [
            {"name": "weigh", "later": [1.50]},
            {"name": "burn", "annotations": {"destructiveHint": true}},
            {"name": "look", "annotations": {"readOnlyHint": true}},
        ], "nextCursor": "2", "_meta": {"x": 1}}),
        "prompts/list" => json!({"prompts": [{"name": "greet"}, {"name": "curse"}]}),
        "resources/list" => json!({"resources": [{"uri": "hive://1"}, {"uri": "hive://2", "name": "hive://1"}]}),
        _ => json!({"content": []}),
    }
}

/// Whether something that only the server's owner may do has reached the server, in whatever form.
pub(crate) fn has_burnt(seen: &[Seen]) -> bool {
    let names = |message: &Value| {
        let object = message["params"].as_object();
        object.is_some_and(|params| params.values().any(|value| value == "burn"))
    };
    seen.iter().any(|seen| match seen.json() {
        Value::Array(messages) => messages.iter().any(names),
        message => names(&message) || String::from_utf8_lossy(&seen.body).contains("burn"),
    })
}

/// A message of a client that negotiated a revision, outside of a session.
fn legacy(revision: &str, message: &Value) -> Request {
    Request::post(message).plain().header("MCP-Protocol-Version", revision)
}
