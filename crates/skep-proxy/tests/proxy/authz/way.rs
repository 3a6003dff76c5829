//! Ways from a client to a server: by HTTP or to a process, of the client's era or of the other one.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use skep_proxy::middleware::{Chain, Middleware, Step};
use skep_proxy::transparent::Dialect;
use skep_proxy::{Proxy, SessionStore};

use super::{guarded, hive, result};
use crate::bridge::server::{Setup, limits};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Era {
    Both,
    Sessions,
    Alone,
}

impl Era {
    /// Whether a server that speaks so has not heard of a method that tells the eras apart.
    fn lacks(self, method: &str) -> bool {
        match self {
            Self::Both => false,
            Self::Sessions => method == "server/discover",
            Self::Alone => method == "initialize",
        }
    }
}

/// A proxy, and the server behind it.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) address: String,
    era: Era,
    server: End,
}

enum End {
    Http(Server, #[expect(dead_code, reason = "it serves as long as it is held")] Before),
    Lines(Arc<Mutex<Vec<Value>>>, #[expect(dead_code, reason = "it serves as long as it is held")] Setup),
}

impl Way {
    /// To a server that speaks HTTP itself.
    pub(super) async fn transparent(name: &'static str, era: Era, steps: Vec<Step>) -> Self {
        let server = Server::start(move |seen| by_http(era, seen)).await;
        let before = guarded(&server, Dialect::Streamable, steps).await;
        Self { name, address: before.address.clone(), era, server: End::Http(server, before) }
    }

    /// To a process that all clients share.
    pub(super) async fn lines(name: &'static str, era: Era, steps: Vec<Step>) -> Self {
        let middleware = Middleware::default();
        middleware.replace(Chain::new(steps));
        let chained = |bridge| Proxy::streamable(bridge).with_middleware(middleware);
        let mut setup = Setup::new(limits(), SessionStore::memory(), chained).await;
        let mut server = setup.server().await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        // It ends with its proxy, which closes its input.
        tokio::spawn(async move {
            while let Some(message) = server.next().await {
                all.lock().unwrap().push(message.clone());
                if message["id"].is_null() {
                    continue;
                }
                if era.lacks(message["method"].as_str().unwrap_or_default()) {
                    server.write(&unknown(&message)).await;
                } else {
                    server.answer(&message, &result(&message)).await;
                }
            }
        });
        Self { name, address: setup.address.clone(), era, server: End::Lines(seen, setup) }
    }

    /// Whether whatever is allowed reaches the server as it is.
    pub(super) fn passes_everything(&self) -> bool {
        self.era == Era::Both
    }

    /// The messages that the server has got since it was last asked.
    pub(super) fn seen(&self) -> Vec<Value> {
        match &self.server {
            End::Http(server, _) => server.seen().iter().map(Seen::json).collect(),
            End::Lines(seen, _) => std::mem::take(&mut *seen.lock().unwrap()),
        }
    }
}

fn unknown(message: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
}

fn by_http(era: Era, seen: &Seen) -> Reply {
    let message = seen.json();
    let method = message["method"].as_str().unwrap_or_default();
    if era.lacks(method) {
        return reply(404, &[("content-type", "application/json")], unknown(&message).to_string());
    }
    let mut answer = hive(seen);
    if era == Era::Sessions && method == "initialize" {
        answer.headers_mut().insert("mcp-session-id", "s".parse().unwrap());
    }
    answer
}
