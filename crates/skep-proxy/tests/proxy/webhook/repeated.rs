//! Arguments that headers repeat, where callbacks change them.

use serde_json::{Value, json};
use skep_proxy::middleware::{FailurePolicy, Power};

use super::{patching, proxy, settings, step};
use crate::eras::stands_alone;
use crate::http::{Request, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// A server whose tool wants an argument in a header, and which looks whether both say the same.
fn checking(seen: &Seen) -> Reply {
    let message = seen.json();
    let yard = message["params"]["arguments"]["yard"].as_str();
    if message["method"] == "tools/call" && seen.header("mcp-param-yard") != yard {
        let error = json!({"code": -32020, "message": "the header says something else"});
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        return reply(400, &[("content-type", "application/json")], body.to_string());
    }
    stands_alone(seen)
}

/// A callback that makes an argument another one, and a proxy that asks it. Messages without the argument stay as they are.
async fn changing(server: &Server, argument: &str, value: &str) -> (Before, Server) {
    let path = format!("/mcp_request/params/arguments/{argument}");
    let hook = Server::start(patching(&json!([{"op": "replace", "path": path, "value": value}]))).await;
    let steps = vec![step(Power::Change, vec![settings(&hook.address, FailurePolicy::Ignore)])];
    (proxy(server, steps, vec![]).await, hook)
}

fn weigh(told: &str) -> Request {
    let arguments = json!({"yard": "north", "note": "quiet"});
    modern(2, "tools/call", json!({"name": "weigh", "arguments": arguments})).header("Mcp-Param-Yard", told)
}

fn called(server: &Server) -> (Option<String>, Value) {
    let seen = server.seen().into_iter().rfind(|seen| seen.json()["method"] == "tools/call").unwrap();
    (seen.header("mcp-param-yard").map(str::to_owned), seen.json()["params"]["arguments"]["yard"].clone())
}

#[tokio::test]
async fn headers_repeat_the_arguments_that_callbacks_have_made() {
    let server = Server::start(checking).await;
    let (before, _hook) = changing(&server, "yard", "hidden").await;
    assert_eq!(before.send(modern(1, "tools/list", json!({}))).await.status, 200);
    assert_eq!(before.send(weigh("north")).await.status, 200);
    assert_eq!(called(&server), (Some("hidden".to_owned()), json!("hidden")));
    // What the client says has to agree with what it says itself, and not with what came of it.
    for lie in ["south", "hidden"] {
        let mut refused = before.send(weigh(lie)).await;
        assert_eq!((refused.status, refused.json().await["error"]["code"].clone()), (400, json!(-32020)), "{lie}");
        assert!(server.seen().is_empty(), "{lie}");
    }
}

#[tokio::test]
async fn what_a_callback_takes_away_is_not_in_a_header_either() {
    let server = Server::start(checking).await;
    // Nobody has listed the tools, so that nobody knows what the header repeats.
    let (before, _hook) = changing(&server, "yard", "hidden").await;
    before.send(weigh("north")).await;
    assert_eq!(called(&server), (None, json!("hidden")));
    let (before, _hook) = changing(&server, "note", "loud").await;
    assert_eq!(before.send(weigh("north")).await.status, 200);
    assert_eq!(called(&server), (Some("north".to_owned()), json!("north")));
}
