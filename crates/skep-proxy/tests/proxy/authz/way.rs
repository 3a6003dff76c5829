//! Ways from a client to a server: by streamable HTTP, HTTP+SSE or to a process, of the client's era or of the other one.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use skep_proxy::middleware::{Chain, Middleware, Step};
use skep_proxy::transparent::Dialect;
use skep_proxy::{Forwarded, Proxy, SessionStore};

use super::caller::MODERN;
use super::{guarded, has_burnt, hive, result};
use crate::bridge::server::{Setup, limits};
use crate::transparent::dialled::{Streams, answering};
use crate::transparent::server::{Before, Reply, Seen, Server, reply};

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Era {
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

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Speech {
    /// Streamable HTTP, with answers that are no streams.
    Plain,
    /// Streamable HTTP, with any answers.
    Events,
    /// HTTP+SSE.
    Older,
}

const OF_SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

/// All ways, with these steps on each, and the revisions that clients can speak there.
pub(super) async fn ways(steps: impl Fn() -> Vec<Step>) -> Vec<(Way, &'static [&'static str])> {
    use Era::{Alone, Both, Sessions};
    use Speech::{Events, Older, Plain};
    vec![
        (Way::transparent("any server", Both, Plain, steps()).await, &ALL),
        (Way::transparent("a server of sessions", Sessions, Plain, steps()).await, &[MODERN]),
        (Way::transparent("a server without sessions", Alone, Plain, steps()).await, &OF_SESSIONS),
        (Way::lines("a process of sessions", Sessions, Plain, steps()).await, &ALL),
        (Way::lines("a process without sessions", Alone, Plain, steps()).await, &ALL),
        (Way::older("HTTP+SSE to a server of it", Older, steps()).await, &OF_SESSIONS),
        (Way::older("a server of HTTP+SSE", Events, steps()).await, &ALL),
        (Way::transparent("HTTP+SSE to a server of sessions", Sessions, Older, steps()).await, &OF_SESSIONS),
        (Way::transparent("HTTP+SSE to a server without sessions", Alone, Older, steps()).await, &OF_SESSIONS),
        (Way::lines("HTTP+SSE to a process of sessions", Sessions, Older, steps()).await, &OF_SESSIONS),
        (Way::lines("HTTP+SSE to a process without sessions", Alone, Older, steps()).await, &OF_SESSIONS),
    ]
}

/// A proxy, and the server behind it.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) address: String,
    pub(super) speech: Speech,
    /// Whether whatever is allowed reaches the server as it is.
    pub(super) passes_everything: bool,
    server: End,
}

enum End {
    Http(Server, #[expect(dead_code, reason = "it serves as long as it is held")] Before),
    Lines(Arc<Mutex<Vec<Value>>>, #[expect(dead_code, reason = "it serves as long as it is held")] Setup),
}

impl Way {
    /// To a server that speaks streamable HTTP itself.
    async fn transparent(name: &'static str, era: Era, speech: Speech, steps: Vec<Step>) -> Self {
        let server = Server::start(move |seen| by_http(era, seen)).await;
        let before = guarded(&server, Dialect::Streamable, steps).await;
        let passes_everything = era == Era::Both;
        Self { name, address: before.address.clone(), speech, passes_everything, server: End::Http(server, before) }
    }

    /// To a server that speaks HTTP+SSE itself.
    async fn older(name: &'static str, speech: Speech, steps: Vec<Step>) -> Self {
        let server = Server::start(answering(&Streams::default(), by_sse)).await;
        let before = guarded(&server, Dialect::Sse, steps).await;
        let passes_everything = speech == Speech::Older;
        Self { name, address: before.address.clone(), speech, passes_everything, server: End::Http(server, before) }
    }

    /// To a process that all clients share.
    async fn lines(name: &'static str, era: Era, speech: Speech, steps: Vec<Step>) -> Self {
        let middleware = Middleware::default();
        middleware.replace(Chain::new(steps));
        let chained = |bridge| match speech {
            Speech::Older => Proxy::sse(bridge, Forwarded::default()).with_middleware(middleware),
            Speech::Plain | Speech::Events => Proxy::streamable(bridge).with_middleware(middleware),
        };
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
        let address = setup.address.clone();
        Self { name, address, speech, passes_everything: false, server: End::Lines(seen, setup) }
    }

    /// Whether something that only the server's owner may do has reached the server since it was last asked.
    pub(super) fn has_burnt(&self) -> bool {
        match &self.server {
            End::Http(server, _) => has_burnt(&server.seen()),
            End::Lines(..) => self.seen().iter().any(|message| message.to_string().contains("burn")),
        }
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

/// What a server of HTTP+SSE answers to whatever wants an answer.
fn by_sse(seen: &Seen, _: usize) -> Option<Value> {
    let message = seen.json();
    message.get("id").is_some().then(|| result(&message))
}

fn by_http(era: Era, seen: &Seen) -> Reply {
    let message = seen.json();
    let method = message["method"].as_str().unwrap_or_default();
    if era.lacks(method) {
        return reply(404, &[("content-type", "application/json")], unknown(&message).to_string());
    }
    if seen.method == "GET" {
        // It has no stream of its own.
        return reply(405, &[], "");
    }
    let mut answer = hive(seen);
    if era == Era::Sessions && method == "initialize" {
        answer.headers_mut().insert("mcp-session-id", "s".parse().unwrap());
    }
    answer
}
