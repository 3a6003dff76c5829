//! Connections to a server without TLS. Each of them is driven by whoever waits for an answer on it.
//!
//! The usual client of hyper runs every connection in a task of its own: a request is handed to that task, and its answer is
//! handed back, piece by piece. Here the task that has a request writes it and reads the answer. Nobody looks at a connection
//! that nobody uses; whether the server has closed it is found out when it is used again.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use skep_mcp::header::SESSION_ID;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_service::Service as _;

use super::breaks::Breaks;
use crate::fetch::resolve::Resolver;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("there is no connection")]
    Unreached(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    #[error("the connection has ended")]
    Ended,
}

/// Connections to servers, and how new ones are made.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    connector: HttpConnector<Resolver>,
    idle: Arc<Idle>,
}

/// Those that nobody uses, by where they lead. The one that was used last is used first.
#[derive(Debug)]
struct Idle {
    patience: Duration,
    /// There are as many places as a server has pods, so that they are looked through faster than looked up.
    places: Mutex<Vec<Place>>,
}

/// Where connections lead, and those that nobody uses.
#[derive(Debug)]
struct Place {
    to: Authority,
    #[expect(clippy::vec_box, reason = "whoever uses one has it in the same box")]
    lines: Vec<Box<Line>>,
}

/// A connection.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Until it has ended.
    connection: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
    to: Authority,
    /// Where it waits when nobody uses it.
    idle: Weak<Idle>,
    /// Since when nobody does.
    since: Instant,
    /// Who is at the other end.
    peer: Connected,
}

impl Lines {
    /// None yet. Those that nobody has used for so long are closed.
    pub(super) fn new(connector: HttpConnector<Resolver>, patience: Duration) -> Self {
        Self { connector, idle: Arc::new(Idle { patience, places: Mutex::default() }) }
    }

    /// Sends a request.
    pub(super) async fn send(&self, leaving: &mut Leaving) -> Result<Response<FromServer>, LineError> {
        loop {
            let (line, is_new) = match self.idle.take(&leaving.to) {
                Some(line) => (line, false),
                // In a box, because most requests need no room for it.
                None => (Box::pin(self.connect(leaving.whole.clone(), leaving.to.clone())).await?, true),
            };
            match line.send(&mut leaving.request).await {
                // It was closed at this very moment, before anything of the request was sent.
                Err(_) if leaving.request.is_some() && !is_new => {}
                answer => return answer,
            }
        }
    }

    async fn connect(&self, whole: Uri, to: Authority) -> Result<Box<Line>, LineError> {
        let stream = self.connector.clone().call(whole).await.map_err(|error| LineError::Unreached(error.into()))?;
        let peer = stream.connected();
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Box::new(Line {
            sender,
            connection: Some(connection),
            to,
            idle: Arc::downgrade(&self.idle),
            since: Instant::now(),
            peer,
        }))
    }

    /// Closes those that nobody has used for long, or that their servers have closed.
    pub(super) fn sweep(&self) {
        self.idle.sweep();
    }
}

impl Idle {
    fn take(&self, to: &Authority) -> Option<Box<Line>> {
        loop {
            let mut line = self.places.lock().iter_mut().find(|place| place.to == *to)?.lines.pop()?;
            if line.is_free() {
                return Some(line);
            }
        }
    }

    fn give_back(&self, mut line: Box<Line>) {
        if line.is_free() {
            line.since = Instant::now();
            let mut places = self.places.lock();
            match places.iter_mut().find(|place| place.to == line.to) {
                Some(place) => place.lines.push(line),
                None => places.push(Place { to: line.to.clone(), lines: vec![line] }),
            }
        }
    }

    fn sweep(&self) {
        let now = Instant::now();
        self.places.lock().retain_mut(|Place { lines, .. }| {
            lines.retain_mut(|line| now.duration_since(line.since) < self.patience && line.is_free());
            !lines.is_empty()
        });
    }
}

/// A request that is about to be sent. Whoever sends it takes it from here, so that it is nowhere else meanwhile.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Here as long as the server has seen nothing of it.
    request: Option<Request<Full<Bytes>>>,
    to: Authority,
    whole: Uri,
}

impl Leaving {
    /// A request to the server that it names.
    pub(super) fn new(mut request: Request<Full<Bytes>>) -> Result<Self, LineError> {
        let Some(to) = request.uri().authority().cloned() else { return Err(LineError::Ended) };
        if !request.headers().contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(to.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let whole = std::mem::replace(request.uri_mut(), path.into());
        Ok(Self { request: Some(request), to, whole })
    }
}

impl Line {
    /// Whether a request can be sent. Nobody is woken when that changes.
    fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Reads and writes what can be read and written now.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(context).is_ready()
        {
            // What came of it is told to whoever waits for an answer.
            self.connection = None;
        }
    }

    /// Sends a request, and gives it back if nothing of it was sent.
    async fn send(
        mut self: Box<Self>,
        request: &mut Option<Request<Full<Bytes>>>,
    ) -> Result<Response<FromServer>, LineError> {
        let Some(leaving) = request.take() else { return Err(LineError::Ended) };
        let mut answer = pin!(self.sender.try_send_request(leaving));
        let answer = std::future::poll_fn(|context| {
            self.drive(context);
            // Nothing happens to it but by the line above, so that nobody has to be woken.
            match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending if self.connection.is_some() => Poll::Pending,
                Poll::Pending => Poll::Ready(Err(LineError::Ended)),
                Poll::Ready(answer) => Poll::Ready(answer.map_err(|mut error| {
                    *request = error.take_message();
                    error.into_error().into()
                })),
            }
        });
        let mut answer = answer.await?;
        // Where a session is has to be known when it begins.
        if answer.headers().contains_key(SESSION_ID) {
            self.peer.get_extras(answer.extensions_mut());
        }
        Ok(answer.map(|body| FromServer::on(body, self)))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Line").field("to", &self.to).finish_non_exhaustive()
    }
}

/// What a server sends, as it comes. Its connection is free for others when all of it was read, and closed when somebody
/// wants no more of it.
#[derive(Debug)]
pub struct FromServer {
    body: Incoming,
    /// What it comes by, unless somebody else takes care of that.
    line: Option<Box<Line>>,
    /// How it ended before its end.
    broken: Option<hyper::Error>,
    /// Who tells of that, if anybody does.
    breaks: Option<Arc<Breaks>>,
}

impl FromServer {
    fn on(body: Incoming, line: Box<Line>) -> Self {
        let mut body = Self { body, line: Some(line), broken: None, breaks: None };
        if body.body.is_end_stream() {
            body.ended();
        }
        body
    }

    /// The same, and the log is told if it breaks off.
    pub(super) fn told(self, breaks: &Arc<Breaks>) -> Self {
        Self { breaks: Some(Arc::clone(breaks)), ..self }
    }

    fn ended(&mut self) {
        if let Some(line) = self.line.take()
            && let Some(idle) = line.idle.upgrade()
        {
            idle.give_back(line);
        }
    }
}

/// A body whose connection has a task of its own.
impl From<Incoming> for FromServer {
    fn from(body: Incoming) -> Self {
        Self { body, line: None, broken: None, breaks: None }
    }
}

impl Body for FromServer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let frame = match &mut this.line {
            None => Pin::new(&mut this.body).poll_frame(context),
            Some(line) => {
                let mut unwoken = Context::from_waker(Waker::noop());
                match Pin::new(&mut this.body).poll_frame(&mut unwoken) {
                    Poll::Pending => {
                        line.drive(context);
                        Pin::new(&mut this.body).poll_frame(&mut unwoken)
                    }
                    ready @ Poll::Ready(_) => ready,
                }
            }
        };
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && this.body.is_end_stream()) {
            this.ended();
        }
        if let Poll::Ready(Some(Err(error))) = frame {
            if let Some(breaks) = this.breaks.take() {
                breaks.tell(&error);
            }
            // What came before it leaves first. Whoever hears of it at once sends nothing at all.
            (this.broken, this.line) = (Some(error), None);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
