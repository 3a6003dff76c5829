//! Asks an MCP server for its tools, over streamable HTTP.
//!
//! This is a conversation with a server of this machine, just long enough to be shown to a person: it is bounded in time
//! and size, and whatever goes wrong in it means that the server does not tell.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A server that has not told its tools by then does not tell.
const LIMIT: Duration = Duration::from_secs(3);
/// More than this is not read of one answer.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
/// Servers tell their tools in pages; more than so many are not asked for.
const MOST_PAGES: usize = 32;
/// The revision that the conversation begins with, and the one without a beginning.
const WITH_HANDSHAKE: &str = "2025-06-18";
const WITHOUT_HANDSHAKE: &str = "2026-07-28";
const SESSION: &str = "mcp-session-id";

/// The names of the tools at a URL. Where its host cannot be reached under that name, `address` says where it is.
pub(super) async fn tools(url: &str, address: Option<SocketAddr>) -> Option<Vec<String>> {
    tokio::time::timeout(LIMIT, async {
        let mut conversation = Conversation::new(url, address)?;
        let begun = conversation.begin().await.is_some();
        let tools = conversation.list(begun).await;
        conversation.end().await;
        tools
    })
    .await
    .ok()?
}

/// Each request has a connection of its own, so that an answer need not be read to its end.
struct Conversation {
    /// Where the host is.
    address: String,
    host: String,
    path: String,
    revision: String,
    session: Option<String>,
}

impl Conversation {
    fn new(url: &str, address: Option<SocketAddr>) -> Option<Self> {
        let rest = url.strip_prefix("http://")?.split('#').next()?;
        let (host, path) = rest.split_at(rest.find('/')?);
        let revision = WITH_HANDSHAKE.to_owned();
        let address = address.map_or_else(|| host.to_owned(), |address| address.to_string());
        Some(Self { address, host: host.to_owned(), path: path.to_owned(), revision, session: None })
    }

    /// The handshake, which the newest revision does not have.
    async fn begin(&mut self) -> Option<()> {
        let client = json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")});
        let message = request(
            0,
            "initialize",
            &json!({"protocolVersion": WITH_HANDSHAKE, "capabilities": {}, "clientInfo": client}),
        );
        let response = self.post(&message).await?;
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let result = answer(response, 0).await?;
        result["protocolVersion"].as_str()?.clone_into(&mut self.revision);
        self.session = session;
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(&message).await.map(drop)
    }

    async fn list(&mut self, begun: bool) -> Option<Vec<String>> {
        let mut params = json!({});
        if !begun {
            WITHOUT_HANDSHAKE.clone_into(&mut self.revision);
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": WITHOUT_HANDSHAKE,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let mut names = Vec::new();
        for page in 1..=MOST_PAGES {
            let response = self.post(&request(page, "tools/list", &params)).await?;
            let result = answer(response, page).await?;
            names
                .extend(result["tools"].as_array()?.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            match result["nextCursor"].as_str() {
                Some(cursor) => params["cursor"] = cursor.into(),
                None => break,
            }
        }
        Some(names)
    }

    /// A session is no use to anybody any more.
    async fn end(&self) {
        if self.session.is_some() {
            // A server that keeps it lets go of it by itself one day.
            let _ = self.send(Method::DELETE, Bytes::new(), "").await;
        }
    }

    async fn post(&self, message: &Value) -> Option<Response<Incoming>> {
        let method = message["method"].as_str().unwrap_or_default();
        let response = self.send(Method::POST, message.to_string().into(), method).await?;
        response.status().is_success().then_some(response)
    }

    async fn send(&self, verb: Method, body: Bytes, method: &str) -> Option<Response<Incoming>> {
        let mut request = Request::builder()
            .method(verb)
            .uri(&self.path)
            .header(HOST, &self.host)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        if method != "initialize" {
            request = request.header("mcp-protocol-version", &self.revision);
        }
        if self.revision == WITHOUT_HANDSHAKE {
            request = request.header("mcp-method", method);
        }
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        let stream = TcpStream::connect(&self.address).await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        // It ends with the answer, or when nobody reads that any more.
        tokio::spawn(connection);
        sender.send_request(request.body(Full::new(body)).ok()?).await.ok()
    }
}

fn request(id: usize, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The result of a request, from a plain answer or from a stream of events.
async fn answer(response: Response<Incoming>, id: usize) -> Option<Value> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let streams = kind.starts_with("text/event-stream");
    let mut body = response.into_body();
    let mut text = Vec::new();
    let mut message = loop {
        match body.frame().await {
            Some(frame) => text.extend(frame.ok()?.into_data().unwrap_or_default()),
            None if streams => return None,
            None => break serde_json::from_slice::<Value>(&text).ok()?,
        }
        if text.len() > LONGEST_ANSWER {
            return None;
        }
        let found = events(&text).into_iter().find(|message| streams && message["id"] == id);
        if let Some(message) = found {
            break message;
        }
    };
    Some(message["result"].take()).filter(|result| !result.is_null())
}

/// The messages of all events that are complete.
fn events(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
    let complete = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    complete.split("\n\n").filter_map(|event| serde_json::from_str(&data(event)).ok()).collect()
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
