//! The server, played by the test, and the proxy before it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Value, json};
use skep_proxy::middleware::Middleware;
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, ServeError};
use tokio::net::TcpListener;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::http::Request;

/// A request as the server got it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

pub(crate) type Reply = Response<BoxBody<Bytes, Infallible>>;

/// An answer of the server.
pub(crate) fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(body.into()).boxed()).unwrap()
}

pub(crate) type Answer = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// A server that does what a function says.
pub(crate) struct Server {
    pub(crate) address: String,
    answer: Arc<Mutex<Answer>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    gate: Arc<RwLock<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, answer).await
    }

    /// The same, for clients that come by TLS.
    pub(crate) async fn start_with(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, tls, answer)
    }

    /// A server at the address of one that has ended.
    pub(crate) async fn start_at(address: &str, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on(TcpListener::bind(address).await.unwrap(), None, answer)
    }

    pub(crate) fn start_on(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Arc::new(answer)));
        let gate = Arc::new(RwLock::new(()));
        let (all, answers, open) = (Arc::clone(&seen), Arc::clone(&answer), Arc::clone(&gate));
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (all, answers, open) = (Arc::clone(&all), Arc::clone(&answers), Arc::clone(&open));
                let service = service_fn(move |request: hyper::Request<Incoming>| {
                    let (all, answers, open) = (Arc::clone(&all), Arc::clone(&answers), Arc::clone(&open));
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let target = parts.uri.to_string();
                        let seen = Seen { method: parts.method.to_string(), target, headers: parts.headers, body };
                        all.lock().unwrap().push(seen.clone());
                        drop(open.read().await);
                        let answer = Arc::clone(&answers.lock().unwrap());
                        Ok::<_, Infallible>(answer(&seen))
                    }
                });
                let (builder, tls) = (Builder::new(TokioExecutor::new()), tls.clone());
                connections.spawn(async move {
                    // Clients that go away are their own affair.
                    let Some(tls) = tls else {
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                        return;
                    };
                    if let Ok(stream) = tls.accept(stream).await {
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    }
                });
            }
        });
        Self { address, answer, seen, gate, serving }
    }

    /// Says nothing more for as long as this is kept.
    pub(crate) fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).try_write_owned().unwrap()
    }

    /// Another server in its place, at the same address.
    pub(crate) fn replace(&self, answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
        self.seen();
    }

    /// What it has got since it was last asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Ends it, with all of its connections.
    pub(crate) async fn end(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }
}

/// A proxy before a server.
pub(crate) struct Before {
    pub(crate) address: String,
    stop: CancellationToken,
    pub(crate) serving: JoinHandle<Result<(), ServeError>>,
}

impl Before {
    pub(crate) async fn local(dialect: Dialect, server: &str) -> Self {
        Self::new(Target::local(dialect, &format!("http://{server}")).unwrap(), Forwarded::default()).await
    }

    pub(crate) async fn remote(dialect: Dialect, address: &str) -> Self {
        Self::new(Target::remote(dialect, address).unwrap().allowing_private(), Forwarded::default()).await
    }

    pub(crate) async fn new(target: Target, forwarded: Forwarded) -> Self {
        Self::with(Transparent::new(target, Limits::default(), forwarded).unwrap()).await
    }

    pub(crate) async fn with(transparent: Transparent) -> Self {
        let before = Self::unready(Proxy::transparent(transparent)).await;
        before.await_ready().await;
        before
    }

    /// A proxy that has found its server, and the chain before it, which is still empty.
    pub(crate) async fn chained(server: &Server, dialect: Dialect) -> (Self, Middleware) {
        Self::chained_to(server, Target::local(dialect, &format!("http://{}", server.address)).unwrap()).await
    }

    /// The same, for a server that somebody else runs.
    pub(crate) async fn chained_remote(server: &Server) -> (Self, Middleware) {
        let address = format!("http://{}/mcp", server.address);
        let target = Target::remote(Dialect::Streamable, &address).unwrap().allowing_private();
        Self::chained_to(server, target).await
    }

    async fn chained_to(server: &Server, target: Target) -> (Self, Middleware) {
        let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
        let middleware = Middleware::default();
        let before = Self::unready(Proxy::transparent(transparent).with_middleware(middleware.clone())).await;
        // That is told by whatever is behind the chain.
        before.await_ready().await;
        server.seen();
        (before, middleware)
    }

    /// It is ready when it does not say otherwise.
    pub(crate) async fn await_ready(&self) {
        let ready = async { while self.send(Request::new("OPTIONS", "/ready")).await.status == 503 {} };
        tokio::time::timeout(crate::http::PATIENCE, ready).await.unwrap();
    }

    /// A proxy that may still look for its server.
    pub(crate) async fn unready(proxy: Proxy) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(proxy.serve(listener, stop.clone()));
        Self { address, stop, serving }
    }

    /// Stops the proxy, and waits until it has.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        (&mut self.serving).await.unwrap().unwrap();
    }

    pub(crate) async fn send(&self, request: Request) -> crate::http::Response {
        request.send(&self.address).await
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A server with sessions that it names by a letter and a number.
pub(crate) fn with_sessions(letter: &'static str) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let sessions = Mutex::new(Vec::<String>::new());
    move |seen| {
        let json = [("content-type", "application/json")];
        let message = seen.json();
        let mut sessions = sessions.lock().unwrap();
        if seen.method == "OPTIONS" {
            return reply(204, &[], "");
        }
        if message["method"] == "initialize" {
            let session = format!("{letter}-{}", sessions.len());
            sessions.push(session.clone());
            let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": message["params"]["protocolVersion"]}});
            return reply(200, &[json[0], ("mcp-session-id", &session)], result.to_string());
        }
        let session = seen.header("mcp-session-id").unwrap_or_default();
        if !sessions.iter().any(|known| known == session) {
            return reply(404, &json, r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}"#);
        }
        if seen.method == "DELETE" {
            sessions.retain(|known| known != session);
            return reply(204, &[], "");
        }
        if message["id"].is_null() {
            return reply(202, &[], "");
        }
        let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"session": session}});
        reply(200, &[json[0], ("mcp-session-id", session)], result.to_string())
    }
}
