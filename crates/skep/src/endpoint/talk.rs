//! What conversations with MCP servers have in common, whichever way the messages go.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::HOST;
use http::{Response, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A server that has not told its tools by then does not tell.
pub(super) const LIMIT: Duration = Duration::from_secs(3);
/// More than this is not read of one answer.
pub(super) const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
/// Servers tell their tools in pages; more than so many are not asked for.
const MOST_PAGES: usize = 32;

/// Where a server is.
pub(super) struct Host {
    address: String,
    name: String,
}

impl Host {
    /// The host of a URL, and the path there. Where it cannot be reached under its name, `address` says where it is.
    pub(super) fn of(url: &str, address: Option<SocketAddr>) -> Option<(Self, String)> {
        let rest = url.strip_prefix("http://")?.split('#').next()?;
        let (name, path) = rest.split_at(rest.find('/')?);
        let address = address.map_or_else(|| name.to_owned(), |address| address.to_string());
        Some((Self { address, name: name.to_owned() }, path.to_owned()))
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn send(&self, request: request::Builder, body: Bytes) -> Option<Response<Incoming>> {
        let stream = TcpStream::connect(&self.address).await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        // It ends with the answer, or when nobody reads that any more.
        tokio::spawn(connection);
        sender.send_request(request.header(HOST, &self.name).body(Full::new(body)).ok()?).await.ok()
    }
}

fn request(id: usize, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The first message, with the number 0.
pub(super) fn initialize(revision: &str) -> Value {
    let client = json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")});
    request(0, "initialize", &json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client}))
}

pub(super) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// The names of the tools, page by page.
pub(super) struct Pages {
    params: Value,
    asked: usize,
    is_last: bool,
    pub(super) names: Vec<String>,
}

impl Pages {
    pub(super) fn new(params: Value) -> Self {
        Self { params, asked: 0, is_last: false, names: Vec::new() }
    }

    /// The next message to send and its number, until there are no more pages.
    pub(super) fn next(&mut self) -> Option<(usize, Value)> {
        self.asked += 1;
        let more = !self.is_last && self.asked <= MOST_PAGES;
        more.then(|| (self.asked, request(self.asked, "tools/list", &self.params)))
    }

    /// Takes the result of the last message; none when that is no page of tools.
    pub(super) fn take(&mut self, result: &Value) -> Option<()> {
        let tools = result["tools"].as_array()?;
        self.names.extend(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
        match result["nextCursor"].as_str() {
            Some(cursor) => self.params["cursor"] = cursor.into(),
            None => self.is_last = true,
        }
        Some(())
    }
}

/// What an answer says, unless it is an error.
pub(super) fn result(mut message: Value) -> Option<Value> {
    Some(message["result"].take()).filter(|result| !result.is_null())
}

/// A stream of events, as far as it was read.
pub(super) struct Events {
    body: Incoming,
    text: Vec<u8>,
}

/// An event: what it is called, and what it says.
type Event = (String, String);

impl Events {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, text: Vec::new() }
    }

    /// The first event that is wanted, whether it was read already or is yet to come.
    pub(super) async fn find<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = events(&self.text).iter().find_map(&wanted) {
                return Some(found);
            }
            self.text.extend(self.body.frame().await?.ok()?.into_data().unwrap_or_default());
            if self.text.len() > LONGEST_ANSWER {
                return None;
            }
        }
    }

    /// The result of a request.
    pub(super) async fn result(&mut self, id: usize) -> Option<Value> {
        let message = self.find(|(_, data)| {
            let message: Value = serde_json::from_str(data).ok()?;
            (message["id"] == id).then_some(message)
        });
        result(message.await?)
    }
}

/// All events that are complete.
fn events(text: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
    let complete = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let field = |event: &str, name: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    complete.split("\n\n").map(|event| (field(event, "event"), field(event, "data"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_events_are_read() {
        let text = b"event: message\r\ndata: {\"id\":\r\ndata: 1}\r\n\r\n: ping\n\ndata: {\"id\":2}\n";
        let found = events(text);
        assert_eq!(found, [("message".to_owned(), "{\"id\":\n1}".to_owned()), (String::new(), String::new())]);
    }
}
