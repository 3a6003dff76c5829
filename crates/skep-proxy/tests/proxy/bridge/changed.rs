//! Calls that callbacks change on their way to a process.

use serde_json::json;
use skep_proxy::middleware::{Authentication, Chain, FailurePolicy, Middleware, Power, Step};
use skep_proxy::{Proxy, SessionStore};

use super::server::{Setup, limits};
use crate::http::modern;
use crate::transparent::server::Server;
use crate::webhook::{patching, settings, step};

#[tokio::test]
async fn a_header_repeats_what_its_client_said_whatever_callbacks_make_of_it() {
    let path = "/mcp_request/params/arguments/yard";
    let hook = Server::start(patching(&json!([{"op": "replace", "path": path, "value": "hidden"}]))).await;
    let hooks = step(Power::Change, vec![settings(&hook.address, FailurePolicy::Ignore)]);
    let steps = vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, hooks];
    let chain = Middleware::new(Chain::new(steps));
    let chained = |bridge| Proxy::streamable(bridge).with_middleware(chain);
    let mut setup = Setup::new(limits(), SessionStore::memory(), chained).await;
    let (mut server, _) = setup.begin().await;
    setup.speak_modern(&mut server).await;
    let schema = json!({"type": "object", "properties": {"yard": {"type": "string", "x-mcp-header": "Yard"}}});
    let (_, ()) = tokio::join!(setup.send(modern(1, "tools/list", json!({}))), async {
        let message = server.expect("tools/list").await;
        server.answer(&message, &json!({"tools": [{"name": "weigh", "inputSchema": schema}]})).await;
    });
    let weigh = |told: &str| {
        let call = modern(2, "tools/call", json!({"name": "weigh", "arguments": {"yard": "north"}}));
        setup.send(call.header("Mcp-Param-Yard", told))
    };
    assert_eq!(weigh("hidden").await.status, 400);
    let (good, ()) = tokio::join!(weigh("north"), async {
        let message = server.expect("tools/call").await;
        assert_eq!(message["params"]["arguments"]["yard"], "hidden");
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(good.status, 200);
}
