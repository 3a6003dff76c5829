//! The chain between clients and a server.

pub(crate) mod audit;
pub(crate) mod auth;
mod away;
mod aws_sts;
mod credentials;
mod cross_app_access;
mod frame;
mod lists;
mod on_behalf_of;
mod rate_limit;
mod recorded;
mod token_exchange;
mod tools;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_proxy::middleware::{Chain, Middleware, Shown, Step, ToolRules};
use skep_proxy::transparent::Dialect;

use crate::http::{Request, Response};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// A server behind a proxy with a chain.
struct Guarded {
    server: Server,
    before: Before,
    middleware: Middleware,
}

impl Guarded {
    async fn new(steps: Vec<Step>, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::of(Dialect::Streamable, steps, answer).await
    }

    async fn of(dialect: Dialect, steps: Vec<Step>, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let server = Server::start(answer).await;
        let (before, middleware) = Before::chained(&server, dialect).await;
        middleware.replace(Chain::new(steps));
        Self { server, before, middleware }
    }

    async fn send(&self, request: Request) -> Response {
        self.before.send(request).await
    }
}

/// Shows these tools, and some of them in another way.
fn rules(shown: &[&str], overrides: &[(&str, &str, &str)]) -> ToolRules {
    let shown = shown.iter().map(|name| (*name).to_owned()).collect();
    let overrides: BTreeMap<String, Shown> = overrides
        .iter()
        .map(|(original, name, description)| {
            (
                (*original).to_owned(),
                Shown { name: (*name).to_owned(), description: (*description).to_owned(), ..Shown::default() },
            )
        })
        .collect();
    ToolRules::new(shown, overrides).unwrap()
}

/// A server with the tools `secret`, `weigh_hive` and `feed`, that says which one was called.
pub(crate) fn with_tools(seen: &Seen) -> Reply {
    let message = seen.json();
    let result = match message["method"].as_str() {
        Some("tools/list") => json!({
            "tools": [
                {"name": "secret", "inputSchema": {}},
                {"name": "weigh_hive", "description": "Weighs.", "x": 1e2},
                {"name": "feed"},
            ],
            "nextCursor": "page-2",
            "_meta": {"a": 1},
        }),
        Some("server/discover") => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
        Some("tools/call") => json!({"called": message["params"]["name"]}),
        _ => json!({}),
    };
    if message["id"].is_null() {
        return reply(202, &[], "");
    }
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    reply(200, &[("content-type", "application/json")], body.to_string())
}

fn names(list: &Value) -> Vec<&str> {
    list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}
