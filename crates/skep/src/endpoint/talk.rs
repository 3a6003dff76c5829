//! What conversations with MCP servers have in common, whichever way the messages go.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::HOST;
use http::{Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A server that has not told its tools by then does not tell.
const LIMIT: Duration = Duration::from_secs(3);
/// More than this is not read of one answer.
pub(super) const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
/// Servers tell their tools in pages; more than so many are not asked for.
const MOST_PAGES: usize = 32;

/// Why a server has not told its tools.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Silence {
    #[error("nobody answers at {0}")]
    Unreachable(String),
    #[error("it answers with HTTP {0}")]
    Refused(StatusCode),
    #[error("it answers: {0}")]
    Error(String),
    #[error("what it says is no MCP")]
    Unclear,
    #[error("it has not told its tools within {} s", LIMIT.as_secs())]
    Late,
}

/// Ends a conversation that takes too long.
pub(super) async fn in_time<T>(conversation: impl Future<Output = Result<T, Silence>>) -> Result<T, Silence> {
    tokio::time::timeout(LIMIT, conversation).await.unwrap_or(Err(Silence::Late))
}

/// Where a server is.
pub(super) struct Host {
    address: String,
    name: String,
}

impl Host {
    /// The host of a URL, and the path there. Where it cannot be reached under its name, `address` says where it is.
    pub(super) fn of(url: &str, address: Option<SocketAddr>) -> Result<(Self, String), Silence> {
        let rest = url.strip_prefix("http://").and_then(|rest| rest.split('#').next());
        let parts = rest.and_then(|rest| Some(rest.split_at(rest.find('/')?)));
        let (name, path) = parts.ok_or_else(|| Silence::Unreachable(url.to_owned()))?;
        let address = address.map_or_else(|| name.to_owned(), |address| address.to_string());
        Ok((Self { address, name: name.to_owned() }, path.to_owned()))
    }

    /// Sends a request on a connection of its own, and takes no refusal for an answer.
    pub(super) async fn send(&self, request: request::Builder, body: Bytes) -> Result<Response<Incoming>, Silence> {
        let unreachable = || Silence::Unreachable(self.address.clone());
        let stream = TcpStream::connect(&self.address).await.map_err(|_| unreachable())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| unreachable())?;
        // It ends with the answer, or when nobody reads that any more.
        tokio::spawn(connection);
        let request = request.header(HOST, &self.name).body(Full::new(body)).map_err(|_| unreachable())?;
        let response = sender.send_request(request).await.map_err(|_| unreachable())?;
        if response.status().is_success() { Ok(response) } else { Err(Silence::Refused(response.status())) }
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

    /// Takes the result of the last message, which is a page of tools.
    pub(super) fn take(&mut self, result: &Value) -> Result<(), Silence> {
        let tools = result["tools"].as_array().ok_or(Silence::Unclear)?;
        self.names.extend(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
        match result["nextCursor"].as_str() {
            Some(cursor) => self.params["cursor"] = cursor.into(),
            None => self.is_last = true,
        }
        Ok(())
    }
}

/// What an answer says, unless it is an error.
pub(super) fn result(mut message: Value) -> Result<Value, Silence> {
    if let Some(text) = message["error"]["message"].as_str() {
        return Err(Silence::Error(text.to_owned()));
    }
    Some(message["result"].take()).filter(|result| !result.is_null()).ok_or(Silence::Unclear)
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
    pub(super) async fn find<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> Result<T, Silence> {
        loop {
            if let Some(found) = events(&self.text).iter().find_map(&wanted) {
                return Ok(found);
            }
            let frame = self.body.frame().await.and_then(Result::ok).ok_or(Silence::Unclear)?;
            self.text.extend(frame.into_data().unwrap_or_default());
            if self.text.len() > LONGEST_ANSWER {
                return Err(Silence::Unclear);
            }
        }
    }

    /// The result of a request.
    pub(super) async fn result(&mut self, id: usize) -> Result<Value, Silence> {
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
