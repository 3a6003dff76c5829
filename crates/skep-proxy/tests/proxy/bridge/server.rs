//! The server, played by the test, and the proxy before it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use skep_proxy::stdio::{Bridge, ConnectError, Connector, LinkError, Processes, Streams};
use skep_proxy::{Forwarded, Limits, Proxy, Readiness, ServeError, SessionStore};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http::{PATIENCE, Request, Response, initialize, modern};

/// The server's end of one connection.
pub(crate) struct Server {
    input: BufReader<DuplexStream>,
    line: Vec<u8>,
    output: DuplexStream,
}

impl Server {
    pub(crate) fn input(&mut self) -> &mut BufReader<DuplexStream> {
        &mut self.input
    }

    /// The next message that the server gets.
    pub(crate) async fn read(&mut self) -> Value {
        let message = tokio::time::timeout(PATIENCE, self.next()).await.unwrap();
        message.unwrap_or_else(|| panic!("the proxy has closed the input"))
    }

    /// The same, or nothing when the proxy has closed the input.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        // A line that was read in part stays, so that this may be given up at any time.
        while !self.line.ends_with(b"\n") {
            if self.input.read_until(b'\n', &mut self.line).await.unwrap() == 0 {
                return None;
            }
        }
        let line = std::mem::take(&mut self.line);
        let message = serde_json::from_slice(&line);
        Some(message.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&line))))
    }

    /// The next message, as it was written.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = Vec::new();
        tokio::time::timeout(PATIENCE, self.input.read_until(b'\n', &mut line)).await.unwrap().unwrap();
        String::from_utf8(line).unwrap().trim_end_matches('\n').to_owned()
    }

    /// The next message of a kind; others before it are an error.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Closes the input, and gives what still can be written.
    pub(crate) fn close_input(self) -> DuplexStream {
        self.output
    }

    pub(crate) async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    pub(crate) async fn write_line(&mut self, line: &str) {
        self.write_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn write_bytes(&mut self, bytes: &[u8]) {
        tokio::time::timeout(PATIENCE, self.output.write_all(bytes)).await.unwrap().unwrap();
    }

    /// The same to a proxy that may be gone.
    pub(crate) async fn try_write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let _ = tokio::time::timeout(PATIENCE, self.output.write_all(line.as_bytes())).await.unwrap();
    }

    /// Says that it speaks the newest revision only, and can do nothing.
    pub(crate) async fn tell_versions(&mut self) {
        let asked = self.expect("server/discover").await;
        self.answer(&asked, &json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})).await;
    }

    pub(crate) async fn list_no_tools(&mut self) {
        let asked = self.expect("tools/list").await;
        self.answer(&asked, &json!({"tools": []})).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Answers the handshake that comes next.
    pub(crate) async fn agree(&mut self) -> Value {
        let request = self.expect("initialize").await;
        let result = json!({"protocolVersion": request["params"]["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "played"}});
        self.answer(&request, &result).await;
        self.expect("notifications/initialized").await;
        request
    }
}

/// Hands the server's end of each connection to the test.
#[derive(Clone)]
struct Played(mpsc::UnboundedSender<Server>);

/// The same for sessions that have a process each.
struct PlayedOnes(Played, Arc<Semaphore>);

struct PlayedOne(Played, #[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

impl Processes for PlayedOnes {
    fn take(&self) -> Option<Box<dyn Connector>> {
        let room = Arc::clone(&self.1).try_acquire_owned().ok()?;
        Some(Box::new(PlayedOne(self.0.clone(), room)))
    }
}

impl Connector for PlayedOne {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        self.0.connect()
    }
}

impl Connector for Played {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        let (input, server_input) = tokio::io::duplex(1 << 16);
        let (server_output, output) = tokio::io::duplex(1 << 16);
        let server = Server { input: BufReader::new(server_input), line: Vec::new(), output: server_output };
        let sent =
            self.0.send(server).map_err(|_| ConnectError { message: "no more servers".to_owned(), is_final: true });
        Box::pin(std::future::ready(sent.map(|()| Streams {
            input: Box::new(input),
            output: Box::new(output),
            ending: Box::pin(std::future::ready(None)),
        })))
    }
}

/// A proxy, and the servers that it connects to.
pub(crate) struct Setup {
    pub(crate) address: String,
    pub(crate) servers: mpsc::UnboundedReceiver<Server>,
    pub(crate) stop: CancellationToken,
    pub(crate) link: JoinHandle<Result<(), LinkError>>,
    pub(crate) listener: JoinHandle<Result<(), ServeError>>,
}

pub(crate) fn limits() -> Limits {
    Limits { request: Duration::from_mins(5), ..Limits::default() }
}

impl Setup {
    pub(crate) async fn streamable() -> Self {
        Self::with_limits(limits()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        Self::new(limits, SessionStore::memory(), Proxy::streamable).await
    }

    pub(crate) async fn sse(forwarded: Forwarded) -> Self {
        Self::new(limits(), SessionStore::memory(), |bridge| Proxy::sse(bridge, forwarded)).await
    }

    pub(crate) async fn new(limits: Limits, store: SessionStore, proxy: impl FnOnce(Arc<Bridge>) -> Proxy) -> Self {
        Self::with(proxy, |readiness, _| Bridge::with_store(limits, readiness, store)).await
    }

    /// Sessions have a process each, up to so many.
    pub(crate) async fn with_own_processes(most: usize) -> Self {
        Self::own(most, Proxy::streamable).await
    }

    /// The same as HTTP+SSE.
    pub(crate) async fn sse_with_own_processes(most: usize) -> Self {
        Self::own(most, |bridge| Proxy::sse(bridge, Forwarded::default())).await
    }

    async fn own(most: usize, proxy: impl FnOnce(Arc<Bridge>) -> Proxy) -> Self {
        Self::with(proxy, |readiness, played| {
            let processes = PlayedOnes(played, Arc::new(Semaphore::new(most)));
            Bridge::with_processes(limits(), readiness, SessionStore::memory(), processes)
        })
        .await
    }

    async fn with(
        proxy: impl FnOnce(Arc<Bridge>) -> Proxy,
        bridge: impl FnOnce(Readiness, Played) -> Arc<Bridge>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let readiness = Readiness::default();
        let (sender, servers) = mpsc::unbounded_channel();
        let bridge = bridge(readiness.clone(), Played(sender.clone()));
        let stop = CancellationToken::new();
        let listener = tokio::spawn(proxy(Arc::clone(&bridge)).serve(listener, stop.clone()));
        let link = tokio::spawn(bridge.run(Played(sender), stop.clone()));
        tokio::time::timeout(PATIENCE, readiness.ready()).await.unwrap();
        Self { address, servers, stop, link, listener }
    }

    /// The server of the connection that was made next.
    pub(crate) async fn server(&mut self) -> Server {
        tokio::time::timeout(PATIENCE, self.servers.recv()).await.unwrap().unwrap()
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        request.send(&self.address).await
    }

    /// Sends a request until whatever it needs is there again.
    pub(crate) async fn once_available(&self, request: Request) -> Response {
        let patient = async {
            loop {
                let response = self.send(request.clone()).await;
                if response.status != 503 {
                    return response;
                }
            }
        };
        tokio::time::timeout(PATIENCE, patient).await.unwrap()
    }

    /// A session of a client; the server has to be past its handshake.
    pub(crate) async fn session(&self, version: &str) -> String {
        let response = self.send(Request::post(&initialize(version))).await;
        assert_eq!(response.status, 200);
        response.header("mcp-session-id").unwrap().to_owned()
    }

    /// Lets the proxy find out that the server answers requests that stand alone.
    pub(crate) async fn speak_modern(&self, server: &mut Server) {
        let (answer, ()) = tokio::join!(self.send(modern(0, "server/discover", json!({}))), async {
            // The first one is the proxy's own question.
            for _ in 0..2 {
                let question = server.expect("server/discover").await;
                server.answer(&question, &json!({"supportedVersions": ["2026-07-28", "2025-11-25"]})).await;
            }
        });
        assert_eq!(answer.status, 200);
    }

    /// The server after the handshake, and a session.
    pub(crate) async fn begin(&mut self) -> (Server, String) {
        let mut server = self.server().await;
        let (session, _) = tokio::join!(self.session("2025-11-25"), server.agree());
        (server, session)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
