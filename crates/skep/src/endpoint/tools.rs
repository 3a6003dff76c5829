//! Asks an MCP server for its tools, over streamable HTTP.
//!
//! This is a conversation with a server of this machine, just long enough to be shown to a person: it is bounded in time
//! and size, and whatever goes wrong in it means that the server does not tell.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};

use super::talk::{Events, Host, LONGEST_ANSWER, Pages, Silence, in_time, initialize, initialized, result};

/// The newest revision in which a conversation has a beginning: clients who share a process all get the one that the
/// first of them has asked for. And the one without.
pub(super) const WITH_HANDSHAKE: &str = "2025-11-25";
const WITHOUT_HANDSHAKE: &str = "2026-07-28";
const SESSION: &str = "mcp-session-id";
/// How long a server may take for the end of a session.
const FAREWELL: Duration = Duration::from_secs(1);

/// The names of the tools at a URL. Where its host cannot be reached under that name, `address` says where it is.
pub(super) async fn tools(url: &str, address: Option<SocketAddr>) -> Result<Vec<String>, Silence> {
    let (host, path) = Host::of(url, address)?;
    let mut conversation = Conversation { host, path, revision: WITH_HANDSHAKE.to_owned(), session: None };
    let tools = in_time(conversation.hold()).await;
    // Also when the server was late: a session may be all that it has.
    conversation.end().await;
    tools
}

/// Each request has a connection of its own, so that an answer need not be read to its end.
struct Conversation {
    host: Host,
    path: String,
    revision: String,
    session: Option<String>,
}

impl Conversation {
    async fn hold(&mut self) -> Result<Vec<String>, Silence> {
        let begun = self.begin().await.is_ok();
        if !begun {
            // Whoever has no handshake has no sessions.
            self.end().await;
        }
        self.list(begun).await
    }

    /// The handshake, which the newest revision does not have.
    async fn begin(&mut self) -> Result<(), Silence> {
        let message = initialize(WITH_HANDSHAKE);
        let response = self.post(&message).await?;
        // It has to be ended whatever comes after.
        self.session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let result = answer(response, 0).await?;
        result["protocolVersion"].as_str().ok_or(Silence::Unclear)?.clone_into(&mut self.revision);
        self.post(&initialized()).await.map(drop)
    }

    async fn list(&mut self, begun: bool) -> Result<Vec<String>, Silence> {
        let mut params = json!({});
        if !begun {
            WITHOUT_HANDSHAKE.clone_into(&mut self.revision);
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": WITHOUT_HANDSHAKE,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let mut pages = Pages::new(params);
        while let Some((id, message)) = pages.next() {
            let response = self.post(&message).await?;
            pages.take(&answer(response, id).await?)?;
        }
        Ok(pages.names)
    }

    /// A session is no use to anybody any more.
    async fn end(&mut self) {
        if self.session.is_some() {
            // A server that keeps it lets go of it by itself one day.
            let _ = tokio::time::timeout(FAREWELL, self.send(Method::DELETE, Bytes::new(), "")).await;
            self.session = None;
        }
    }

    async fn post(&self, message: &Value) -> Result<Response<Incoming>, Silence> {
        let method = message["method"].as_str().unwrap_or_default();
        self.send(Method::POST, message.to_string().into(), method).await
    }

    async fn send(&self, verb: Method, body: Bytes, method: &str) -> Result<Response<Incoming>, Silence> {
        let mut request = Request::builder()
            .method(verb)
            .uri(&self.path)
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
        self.host.send(request, body).await
    }
}

/// The result of a request, from a plain answer or from a stream of events.
async fn answer(response: Response<Incoming>, id: usize) -> Result<Value, Silence> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let body = response.into_body();
    if kind.starts_with("text/event-stream") {
        return Events::new(body).result(id).await;
    }
    let text = Limited::new(body, LONGEST_ANSWER).collect().await.map_err(|_| Silence::Unclear)?.to_bytes();
    result(serde_json::from_slice(&text).map_err(|_| Silence::Unclear)?)
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
