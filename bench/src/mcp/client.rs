//! A real MCP client: a session on a connection that stays open.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const REVISION: HeaderValue = HeaderValue::from_static("2025-11-25");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const SESSION: &str = "mcp-session-id";

/// Where clients come in, and what they show there.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    /// The value of `Authorization`, where somebody asks for it.
    pub(crate) credential: Option<HeaderValue>,
}

/// How long a server may take until it serves.
const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// Waits until a client can begin a session.
pub(super) async fn wait(door: &Door) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        match Client::in_session(door).await {
            Ok(mut client) => return client.end().await,
            Err(error) if begun.elapsed() > START => return Err(error.context("it does not serve")),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// A connection. It ends with the client.
#[derive(Debug)]
struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: JoinHandle<hyper::Result<()>>,
    host: HeaderValue,
    credential: Option<HeaderValue>,
}

impl Connection {
    async fn open(Door { address, credential }: &Door) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let host = address.to_string().parse()?;
        Ok(Self { sender, driver: tokio::spawn(connection), host, credential: credential.clone() })
    }

    async fn send(
        &mut self,
        method: Method,
        session: Option<&HeaderValue>,
        accept: HeaderValue,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = http::Uri::from_static("/mcp");
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, accept);
        if let Some(credential) = &self.credential {
            headers.insert(AUTHORIZATION, credential.clone());
        }
        if let Some(session) = session {
            headers.insert(SESSION, session.clone());
            headers.insert("mcp-protocol-version", REVISION);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A session.
#[derive(Debug)]
pub(crate) struct Client {
    connection: Connection,
    door: Door,
    session: Option<HeaderValue>,
    next: u64,
}

/// The stream of a session for what belongs to no request. It ends with this.
#[derive(Debug)]
pub(crate) struct Listening {
    _connection: Connection,
    _stream: Response<Incoming>,
}

impl Client {
    /// A client without a session.
    pub(crate) async fn connect(door: &Door) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(door).await?, door: door.clone(), session: None, next: 0 })
    }

    /// Begins a session.
    pub(crate) async fn begin(&mut self) -> anyhow::Result<()> {
        let client = json!({"name": "skep-bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.session = None;
        let response = self.post(&self.request("initialize", &params)).await?;
        self.session = Some(response.headers().get(SESSION).context("no session")?.clone());
        self.finish(response).await?;
        let response = self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        ensure!(response.status() == 202, "the handshake ends with {}", response.status());
        response.collect().await?;
        Ok(())
    }

    /// A client with a session.
    pub(crate) async fn in_session(door: &Door) -> anyhow::Result<Self> {
        let mut client = Self::connect(door).await?;
        client.begin().await?;
        Ok(client)
    }

    /// Calls a tool, and reads its answer to the end.
    pub(crate) async fn call(&mut self, tool: &str) -> anyhow::Result<()> {
        let params = json!({"name": tool, "arguments": {"message": "honey"}});
        let response = self.post(&self.request("tools/call", &params)).await?;
        self.finish(response).await
    }

    /// Ends the session.
    pub(crate) async fn end(&mut self) -> anyhow::Result<()> {
        let response = self.connection.send(Method::DELETE, self.session.as_ref(), BOTH, Bytes::new()).await?;
        ensure!(response.status().is_success(), "the session ends with {}", response.status());
        response.collect().await?;
        Ok(())
    }

    /// Opens the stream of the session.
    pub(crate) async fn listen(&self) -> anyhow::Result<Listening> {
        let mut connection = Connection::open(&self.door).await?;
        let stream = connection.send(Method::GET, self.session.as_ref(), EVENTS, Bytes::new()).await?;
        ensure!(stream.status() == 200, "the stream begins with {}", stream.status());
        Ok(Listening { _connection: connection, _stream: stream })
    }

    fn request(&self, method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
    }

    async fn post(&mut self, message: &Value) -> anyhow::Result<Response<Incoming>> {
        self.connection.send(Method::POST, self.session.as_ref(), BOTH, message.to_string().into()).await
    }

    /// Reads an answer to the end, and makes sure that it is ours.
    async fn finish(&mut self, response: Response<Incoming>) -> anyhow::Result<()> {
        let status = response.status();
        let body = response.collect().await?.to_bytes();
        let own = format!("\"id\":{}", self.next);
        let has_own = memchr::memmem::find(&body, own.as_bytes()).is_some();
        let has_result = memchr::memmem::find(&body, b"\"result\"").is_some();
        ensure!(status == 200 && has_own && has_result, "{status}: {}", String::from_utf8_lossy(&body));
        self.next += 1;
        Ok(())
    }
}
