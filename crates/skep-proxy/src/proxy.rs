//! One address in front of a server: which path goes where.

use std::io;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::answer::{self, Answer};
use crate::cors;
use crate::eras::verdict::Eras;
use crate::forwarded::Forwarded;
use crate::guard::Guard;
use crate::health::{self, Health};
use crate::intake;
use crate::limits::Limits;
use crate::listener::{self, Calls, Coming, Peer, Service};
use crate::middleware::layer::Destination;
use crate::middleware::{Exchange, Middleware, telemetry};
use crate::open_ended::OpenEnded;
use crate::readiness::Readiness;
use crate::stdio::{Bridge, Paths, Sse, Streamable};
use crate::tls::TlsIdentity;
use crate::transparent::Transparent;

/// How clients reach the server.
#[derive(Debug)]
enum Transport {
    Streamable {
        streamable: Streamable,
        /// The older transport, at the same endpoint.
        older: Sse,
        /// Whether a version that nobody knows is refused whatever a request is about.
        is_strict: bool,
    },
    Sse(Sse),
    Transparent(Box<Transparent>),
}

impl Transport {
    /// What is known about the era of the server.
    fn eras(&self) -> &Arc<Eras> {
        match self {
            Self::Streamable { older: sse, .. } | Self::Sse(sse) => sse.bridge.eras(),
            Self::Transparent(transparent) => transparent.eras(),
        }
    }
}

/// Why a proxy stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener cannot be used.
    #[error("cannot use the listener: {0}")]
    Listener(#[from] io::Error),
    /// The server did not answer for too long.
    #[error("the MCP server does not answer any more")]
    ServerLost,
}

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    transport: Transport,
    readiness: Readiness,
    limits: Limits,
    origins: Vec<String>,
    tls: Option<TlsIdentity>,
    middleware: Middleware,
    calls: Calls,
}

impl Proxy {
    /// A proxy that serves a bridge as streamable HTTP at `/mcp`, and there as HTTP+SSE to clients that open its stream.
    pub fn streamable(bridge: Arc<Bridge>) -> Self {
        let (limits, readiness) = (bridge.limits().clone(), bridge.readiness().clone());
        let older = Sse { bridge: Arc::clone(&bridge), forwarded: Forwarded::default(), paths: Paths::SHARED };
        Self::new(limits, readiness, Transport::Streamable { streamable: Streamable(bridge), older, is_strict: false })
    }

    /// A proxy that serves a bridge as HTTP+SSE at `/sse`.
    pub fn sse(bridge: Arc<Bridge>, forwarded: Forwarded) -> Self {
        let (limits, readiness) = (bridge.limits().clone(), bridge.readiness().clone());
        Self::new(limits, readiness, Transport::Sse(Sse { bridge, forwarded, paths: Paths::ITS_OWN }))
    }

    /// A proxy before a server that speaks HTTP itself.
    pub fn transparent(transparent: Transparent) -> Self {
        let (limits, readiness) = (transparent.limits().clone(), transparent.readiness().clone());
        Self::new(limits, readiness, Transport::Transparent(Box::new(transparent)))
    }

    fn new(limits: Limits, readiness: Readiness, transport: Transport) -> Self {
        Self {
            transport,
            readiness,
            limits,
            origins: Vec::new(),
            tls: None,
            middleware: Middleware::default(),
            calls: Calls::default(),
        }
    }

    /// Whom to believe about the address that clients know, where that has to be told them.
    #[must_use]
    pub fn with_forwarded(mut self, told: Forwarded) -> Self {
        if let Transport::Streamable { older: Sse { forwarded, .. }, .. } | Transport::Sse(Sse { forwarded, .. }) =
            &mut self.transport
        {
            *forwarded = told;
        }
        self
    }

    /// Says that a version header which names no revision is refused with every request, and not only with messages that go
    /// by it. It concerns a bridge as streamable HTTP.
    #[must_use]
    pub fn with_strict_versions(mut self) -> Self {
        if let Transport::Streamable { is_strict, .. } = &mut self.transport {
            *is_strict = true;
        }
        self
    }

    /// The origins of web pages that may talk to the proxy.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = origins;
        self
    }

    /// What the proxy shows to clients, which then have to come by https.
    #[must_use]
    pub fn with_tls(mut self, identity: TlsIdentity) -> Self {
        self.tls = Some(identity);
        self
    }

    /// What requests pass before they reach the server.
    #[must_use]
    pub fn with_middleware(mut self, middleware: Middleware) -> Self {
        self.middleware = middleware;
        self
    }

    /// Counts the requests that are under way.
    pub fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Serves connections until `stop` is cancelled or the server is given up; what is under way then may finish.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) -> Result<(), ServeError> {
        let guard = Guard::new(&self.origins, listener::scheme(self.tls.as_ref()), listener.local_addr()?);
        if guard.is_open() {
            tracing::warn!("web pages of any origin may use this proxy; list those that may in allowed_origins");
        }
        self.middleware.watch(self.transport.eras());
        let (limits, tls) = (self.limits.clone(), self.tls.clone());
        // Whoever stops the proxy stops it here, and so does a server that is gone.
        let stop = stop.child_token();
        let surface = Arc::new(Surface { proxy: self, guard, stop: stop.clone() });
        let watching = async {
            let Transport::Transparent(transparent) = &surface.proxy.transport else { return Ok(()) };
            tokio::select! {
                () = transparent.run() => {
                    stop.cancel();
                    Err(ServeError::ServerLost)
                }
                () = stop.cancelled() => Ok(()),
            }
        };
        let serving = listener::serve(listener, tls.as_ref(), Arc::clone(&surface), &limits, stop.clone());
        let ((), watched) = tokio::join!(serving, watching);
        let Proxy { transport, middleware, .. } = &surface.proxy;
        let leaving = async {
            if let Transport::Transparent(transparent) = transport {
                transparent.close().await;
            }
        };
        tokio::join!(leaving, middleware.close());
        watched
    }

    async fn health(&self) -> Health {
        let (transport, server) = match &self.transport {
            Transport::Streamable { .. } => ("streamable-http", None),
            Transport::Sse(_) => {
                let reason = self.readiness.reason();
                ("stdio", Some(reason.map_or(Ok(None), |reason| Err(reason.to_string()))))
            }
            Transport::Transparent(transparent) => {
                let server = transparent.health().await;
                (transparent.dialect().name(), server.map(|server| server.map(Some)))
            }
        };
        Health { transport, server, era: self.transport.eras().status() }
    }
}

/// The proxy as its listener sees it.
#[derive(Debug)]
struct Surface {
    proxy: Proxy,
    guard: Guard,
    /// Cancelled when the proxy stops.
    stop: CancellationToken,
}

impl Service for Surface {
    fn calls(&self) -> Calls {
        self.proxy.calls()
    }

    async fn answer(&self, peer: Peer, request: Request<Coming>) -> Answer {
        let path = request.uri().path();
        if path == "/health" {
            // In a box, because no other request needs room for it.
            return health::answer(request.method(), &Box::pin(self.proxy.health()).await);
        }
        if path == telemetry::PATH {
            let told = self.proxy.middleware.chain().metrics(&request);
            return told.unwrap_or_else(|| answer::text(StatusCode::NOT_FOUND, "metrics are not served on this port"));
        }
        if path == "/.well-known" || path.starts_with("/.well-known/") {
            let described = self.proxy.middleware.chain().describe(&request);
            return described.unwrap_or_else(|| answer::json(StatusCode::NOT_FOUND, r#"{"error":"not_found"}"#));
        }
        if let Err(refusal) = self.guard.check(request.headers(), request.uri()) {
            return refusal;
        }
        let Some(origin) = self.guard.listed(request.headers()).cloned() else {
            return self.pass(peer, request).await;
        };
        if let Some(told) = cors::preflight(request.method(), request.headers(), &origin) {
            return told;
        }
        let mut answer = self.pass(peer, request).await;
        cors::expose(&mut answer, &origin);
        answer
    }
}

impl Surface {
    /// Hands a request to the chain, and behind that to the transport.
    async fn pass(&self, peer: Peer, request: Request<Coming>) -> Answer {
        if let Transport::Transparent(transparent) = &self.proxy.transport
            && let Err(refusal) = transparent.gate(request.method(), request.headers())
        {
            return refusal;
        }
        let Proxy { middleware, limits, transport, .. } = &self.proxy;
        let answer = middleware.chain().answer(peer, request, limits, transport).await;
        OpenEnded::end_with(&self.stop, answer)
    }
}

impl Destination for Transport {
    fn passes_everything(&self) -> bool {
        matches!(self, Self::Transparent(_))
    }

    fn answer<'a>(&'a self, exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        if exchange.parts.method == Method::POST
            && let Err(refusal) = intake::require_uncoded(&exchange.parts.headers)
        {
            return std::future::ready(refusal).boxed();
        }
        if let Self::Transparent(transparent) = self {
            return transparent.serve(exchange);
        }
        let peer = exchange.peer;
        let (scheme, mut request) = (peer.scheme, exchange.into_request());
        request.extensions_mut().insert(peer);
        match (self, request.uri().path()) {
            (Self::Streamable { is_strict: true, .. }, "/mcp")
                if let Err(refusal) = intake::require_known_version(request.headers()) =>
            {
                std::future::ready(refusal).boxed()
            }
            (Self::Streamable { older, .. }, "/mcp") if older.is_meant(&request) => {
                older.serve(scheme, request).boxed()
            }
            (Self::Streamable { streamable, .. }, "/mcp") => streamable.serve(request).boxed(),
            (Self::Sse(sse), path) if path == sse.paths.stream => sse.open(scheme, request).boxed(),
            (Self::Sse(sse), path) if path == sse.paths.messages => sse.post(request).boxed(),
            _ => std::future::ready(answer::text(StatusCode::NOT_FOUND, "404 page not found")).boxed(),
        }
    }
}
