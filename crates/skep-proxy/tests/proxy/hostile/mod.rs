//! What nobody should send, to every kind of proxy: a clear error or a clean end, and the server sees none of it.

mod backend;
mod bodies;
mod wire;

use skep_proxy::Forwarded;
use skep_proxy::transparent::Dialect;

use crate::bridge::server::{Server as Process, Setup};
use crate::bridge::sse;
use crate::http::{Request, Response, call};
use crate::transparent::server::{Before, Server, with_sessions};

/// A proxy of each kind, with a server that tells what reached it.
struct Proxies {
    bridge: Setup,
    process: Process,
    transparent: Before,
    events: Before,
    server: Server,
    lines: Lines,
}

/// The bridge as HTTP+SSE, with a client that is connected.
struct Lines {
    setup: Setup,
    process: Process,
    stream: Response,
    path: String,
}

impl Proxies {
    async fn start() -> Self {
        let mut bridge = Setup::streamable().await;
        let (process, _) = bridge.begin().await;
        let server = Server::start(with_sessions("a")).await;
        let transparent = Before::local(Dialect::Streamable, &server.address).await;
        let events = Before::local(Dialect::Sse, &server.address).await;
        server.seen();
        let mut setup = Setup::sse(Forwarded::default()).await;
        let (sse_process, stream, path) = sse::begin(&mut setup).await;
        let lines = Lines { setup, process: sse_process, stream, path };
        Self { bridge, process, transparent, events, server, lines }
    }

    /// Where each of them takes messages.
    fn endpoints(&self) -> [(&str, &str); 4] {
        let [bridge, transparent, events] = self.addresses().map(|address| (address, "/mcp"));
        [bridge, transparent, events, (&self.lines.setup.address, &self.lines.path)]
    }

    fn addresses(&self) -> [&str; 3] {
        [&self.bridge.address, &self.transparent.address, &self.events.address]
    }

    /// Makes sure that the proxies still serve, and that the servers got nothing but what was sent for that.
    async fn are_unharmed(mut self) {
        let (answer, ()) = tokio::join!(self.bridge.send(Request::post(&call(1, "next")).plain()), async {
            let message = self.process.expect("tools/call").await;
            assert_eq!(message["params"]["name"], "next");
            self.process.answer(&message, &serde_json::json!({})).await;
        });
        assert_eq!(answer.status, 200);
        for proxy in [&self.transparent, &self.events] {
            // Whoever takes events for an answer does not speak HTTP+SSE.
            proxy.send(Request::post(&call(1, "next")).plain()).await;
        }
        let seen = self.server.seen();
        let bodies: Vec<_> = seen.iter().map(|seen| String::from_utf8_lossy(&seen.body)).collect();
        assert_eq!(bodies, [call(1, "next").to_string(), call(1, "next").to_string()]);
        let Lines { setup, process, stream, path } = &mut self.lines;
        assert_eq!(setup.send(Request::post(&call(1, "next")).at(path)).await.status, 202);
        let message = process.expect("tools/call").await;
        assert_eq!(message["params"]["name"], "next");
        process.answer(&message, &serde_json::json!({})).await;
        assert_eq!(stream.message().await.unwrap()["id"], 1, "nothing else was said");
    }
}
