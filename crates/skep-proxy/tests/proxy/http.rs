//! HTTP by hand: a request is what the test wrote, and a response is read as it comes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A request on a connection of its own.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    patience: Duration,
}

impl Request {
    pub(crate) fn new(method: &'static str, target: &str) -> Self {
        Self { method, target: target.to_owned(), headers: Vec::new(), body: Bytes::new(), patience: PATIENCE }
    }

    /// A message to the endpoint of streamable HTTP.
    pub(crate) fn post(message: &Value) -> Self {
        Self::new("POST", "/mcp")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(message.to_string())
    }

    /// A request for the stream of a session.
    pub(crate) fn listen(session: &str) -> Self {
        Self::new("GET", "/mcp").header("Accept", "text/event-stream").header("Mcp-Session-Id", session)
    }

    /// To another endpoint.
    pub(crate) fn at(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces a header.
    pub(crate) fn instead(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.header(name, value)
    }

    /// Takes only JSON for an answer.
    pub(crate) fn plain(self) -> Self {
        self.instead("Accept", "application/json")
    }

    pub(crate) fn in_session(self, session: &str) -> Self {
        self.header("Mcp-Session-Id", session)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits longer for an answer, or not as long.
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(crate) async fn send(self, address: &str) -> Response {
        let stream = TcpStream::connect(address).await.unwrap();
        self.send_on(stream, address).await
    }

    /// Sends it from another address of this machine: `127.0.0.2` and those after it.
    pub(crate) async fn send_from(self, source: [u8; 4], address: &str) -> Response {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        let stream = socket.connect(address.parse().unwrap()).await.unwrap();
        self.send_on(stream, address).await
    }

    /// Sends it on a connection that was made already.
    pub(crate) async fn send_on(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        address: &str,
    ) -> Response {
        tokio::time::timeout(self.patience, self.exchange(stream, address)).await.unwrap()
    }

    async fn exchange(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, address: &str) -> Response {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = hyper::Request::builder().method(self.method).uri(self.target);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            request = request.header("Host", address);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let response = sender.send_request(request.body(Full::new(self.body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            rest: BytesMut::new(),
            _open: Open { connection, _sender: sender },
        }
    }
}

/// The connection, which is closed with the response.
#[derive(Debug)]
struct Open {
    connection: tokio::task::JoinHandle<hyper::Result<()>>,
    _sender: http1::SendRequest<Full<Bytes>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A response whose body may still be under way.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: hyper::HeaderMap,
    body: Incoming,
    rest: BytesMut,
    _open: Open,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) async fn text(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(self.rest.split().to_vec()).unwrap()
    }

    pub(crate) async fn json(&mut self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// Waits for the first of the body, so that whatever it says has happened.
    pub(crate) async fn skip(&mut self) {
        self.more().await;
    }

    async fn more(&mut self) -> bool {
        match tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap() {
            None => false,
            Some(frame) => {
                self.rest.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
                true
            }
        }
    }

    /// The next event, as it was written; nothing when the stream is over.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let event = self.rest.split_to(end + 2);
                return Some(String::from_utf8(event.to_vec()).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next event that is a message.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                assert!(event.contains("event: message\n"), "clients ignore events without a name: {event}");
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn call(id: impl Into<Value>, tool: &str) -> Value {
    request(id, "tools/call", &json!({"name": tool, "arguments": {}}))
}

pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    request("init", "initialize", &json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}))
}

/// A request that stands alone.
pub(crate) fn modern(id: impl Into<Value>, method: &str, params: Value) -> Request {
    with_capabilities(id, method, params, &json!({}))
}

/// The same of a client that can do something.
pub(crate) fn with_capabilities(
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
    capabilities: &Value,
) -> Request {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let name = params["name"].as_str().map(str::to_owned);
    let mut post = Request::post(&request(id, method, &params))
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    if let Some(name) = name {
        post = post.header("Mcp-Name", &name);
    }
    post
}
