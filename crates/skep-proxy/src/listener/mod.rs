//! Sockets: who may connect, for how long, and how it ends.

mod activity;
mod calls;
mod coming;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::EXPECT;
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use skep_task::Prompt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::activity::{Activity, Noted, Overdue, Sending};
pub use self::calls::Calls;
pub(crate) use self::coming::Coming;
use crate::answer::{self, Answer};
use crate::limits::Limits;
use crate::tls::TlsIdentity;

/// What to wait for when the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many requests one connection of HTTP/2 may have under way.
const STREAMS: u32 = 250;
const LONGEST_V4: usize = "255.255.255.255".len();

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// What it came by.
    pub(crate) scheme: &'static str,
}

impl Peer {
    /// Where it is, in writing, without its port. Every request needs that, and the usual way takes its time.
    pub(crate) fn ip_text(&self) -> String {
        let IpAddr::V4(address) = self.address.ip() else { return self.address.ip().to_string() };
        let mut text = String::with_capacity(LONGEST_V4);
        for (place, octet) in address.octets().into_iter().enumerate() {
            if place > 0 {
                text.push('.');
            }
            let digits = [octet / 100, octet / 10 % 10, octet % 10];
            let zeros = digits[..2].iter().take_while(|digit| **digit == 0).count();
            text.extend(digits[zeros..].iter().map(|digit| char::from(b'0' + digit)));
        }
        text
    }
}

/// Answers requests.
pub(crate) trait Service: Send + Sync + 'static {
    fn answer(&self, peer: Peer, request: Request<Coming>) -> impl Future<Output = Answer> + Send;

    /// Where requests are counted, if anybody wants to know.
    fn calls(&self) -> Calls {
        Calls::default()
    }
}

/// How long a connection may take for the head of a request, how long it may ask nothing, and how much it may send with one.
#[derive(Debug, Clone, Copy)]
struct Patience {
    head: Duration,
    idle: Duration,
    body_bytes: usize,
}

impl Patience {
    fn of(limits: &Limits) -> Self {
        Self { head: limits.head, idle: limits.idle, body_bytes: limits.body_bytes }
    }
}

/// What all connections of a listener share.
struct Host<S> {
    service: Arc<S>,
    patience: Patience,
    /// Places for requests of connections that have several under way. Together there are as many as connections, so that
    /// what one request may hold is held no more often.
    streams: Arc<Semaphore>,
}

/// The place of a request among those of all connections that have several under way.
#[derive(Debug, Default)]
struct Place(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

/// There is no place.
struct Crowded;

impl Place {
    fn take(version: Version, streams: &Arc<Semaphore>) -> Result<Self, Crowded> {
        if version < Version::HTTP_2 {
            return Ok(Self::default());
        }
        Arc::clone(streams).try_acquire_owned().map(|permit| Self(Some(permit))).map_err(|_| Crowded)
    }
}

/// What an address begins with that clients reach the listener by.
pub(crate) fn scheme(tls: Option<&TlsIdentity>) -> &'static str {
    if tls.is_some() { "https" } else { "http" }
}

/// Serves connections until `stop` is cancelled and those that are open then have ended, or had their time.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<&TlsIdentity>,
    service: Arc<impl Service>,
    limits: &Limits,
    stop: CancellationToken,
) {
    accept(listener, tls, service, limits, stop).await.end(limits.drain).await;
}

/// Accepts connections until `stop` is cancelled. Those that are open then are about to end.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<&TlsIdentity>,
    service: Arc<impl Service>,
    limits: &Limits,
    stop: CancellationToken,
) -> Open {
    let acceptor = tls.map(TlsIdentity::acceptor);
    let room = Arc::new(Semaphore::new(limits.connections));
    let streams = Arc::new(Semaphore::new(limits.connections));
    let builder = builder(limits);
    let mut connections = JoinSet::new();
    loop {
        let next = async { (Arc::clone(&room).acquire_owned().await, listener.accept().await) };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => break,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, address)) => {
                // Small answers should not wait for more to come.
                let _ = stream.set_nodelay(true);
                let peer = Peer { address, scheme: scheme(tls) };
                let (builder, patience, streams) = (builder.clone(), Patience::of(limits), Arc::clone(&streams));
                let (host, acceptor, stop) =
                    (Host { service: Arc::clone(&service), patience, streams }, acceptor.clone(), stop.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    let Some(acceptor) = acceptor else {
                        return converse(builder, stream, peer, host, stop).await;
                    };
                    // Whoever cannot agree on TLS in time has nothing to say to us.
                    if let Ok(Ok(stream)) = tokio::time::timeout(patience.head, acceptor.accept(stream)).await {
                        converse(builder, stream, peer, host, stop).await;
                    }
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    Open(connections)
}

/// The connections that were open when the listener stopped.
#[derive(Debug)]
pub(crate) struct Open(JoinSet<()>);

impl Open {
    /// Waits for their end, and cuts off what is open after so long.
    pub(crate) async fn end(mut self, drain: Duration) {
        let ended = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(drain, ended).await.is_err() {
            self.0.shutdown().await;
        }
    }
}

async fn converse(
    builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    Host { service, patience, streams }: Host<impl Service>,
    stop: CancellationToken,
) {
    let activity = Activity::new();
    let stream = Noted::new(stream, Arc::clone(&activity));
    let (noted, calls) = (Arc::clone(&activity), service.calls());
    let service = service_fn(move |request: Request<Incoming>| {
        let (service, under_way, call) = (Arc::clone(&service), noted.begin(), calls.begin());
        let is_withheld = request.headers().contains_key(EXPECT);
        let request = request.map(|body| Coming::new(body, patience.body_bytes, is_withheld, noted.begin()));
        let place = Place::take(request.version(), &streams);
        // In a box, because a connection keeps room for an answer on its way for as long as it lives.
        Box::pin(async move {
            let answer = match place {
                Ok(_) => service.answer(peer, request).await,
                Err(Crowded) => answer::not_ready("too many requests are under way"),
            };
            let place = place.unwrap_or_default();
            Ok::<_, Infallible>(answer.map(|body| Sending { body, _under_way: under_way, _call: call, _place: place }))
        })
    });
    let mut connection = Prompt::new(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // The client went away, or spoke something else: there is nobody to tell.
        _ = &mut connection => {}
        why = activity.overdue(patience.head, patience.idle) => {
            // Whoever does not read what it asked for has no use for it.
            if why == Overdue::Idle {
                connection.inner().graceful_shutdown();
                // A request that came at the last moment is still answered, to somebody who reads.
                let ending = async {
                    tokio::time::sleep(patience.head).await;
                    activity.overdue(patience.head, patience.idle).await
                };
                tokio::select! {
                    _ = connection => {}
                    _ = ending => {}
                }
            }
        }
        () = stop.cancelled() => {
            // Whoever has just connected is about to say what it wants, and would be cut off.
            let is_settled = tokio::select! {
                _ = &mut connection => return,
                is_settled = activity.settled() => is_settled,
            };
            if is_settled {
                connection.inner().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // That would not tell a head that is slow from one that nobody has begun to send.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.idle)
        .keep_alive_timeout(limits.head);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_usual() {
        for text in ["0.0.0.0", "10.1.200.99", "127.0.0.1", "255.255.255.255", "100.10.9.109", "::1", "2001:db8::7"] {
            let peer = Peer { address: SocketAddr::new(text.parse().unwrap(), 5), scheme: "http" };
            assert_eq!(peer.ip_text(), text);
        }
    }
}
