//! The server on a network: TLS, client certificates, limits, and an orderly end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::linger::Lingering;
use super::{Server, leftover};
use crate::auth::tls::ClientCertificates;

/// Requests that are under way when the server is asked to stop get this long. Watches never end by themselves.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// What to wait for when the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many requests one connection may have under way, as on the real server.
const STREAMS: u32 = 250;
/// The head of a request may be so large. It is held before anybody knows who asks, so that this times the number of
/// connections is memory that anybody can take. Paths end at 64 KiB anyway.
const HEAD_LIMIT: u32 = 256 * 1024;
/// How often a client that says nothing is asked whether it is still there, and how long it may think about it.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
/// A connection that is to be closed gets this long for its last words.
const FAREWELL: Duration = Duration::from_secs(1);

impl Server {
    /// Serves connections over TLS until `stop` is ready.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        clients: Arc<ClientCertificates>,
        stop: impl Future<Output = ()>,
    ) {
        let acceptor = TlsAcceptor::from(tls);
        let room = Arc::new(Semaphore::new(self.state.limits.connections));
        let mut connections = tokio::task::JoinSet::new();
        tokio::pin!(stop);
        loop {
            let next = async { (room.clone().acquire_owned().await, listener.accept().await) };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => {
                    let (server, acceptor, clients) = (self.clone(), acceptor.clone(), clients.clone());
                    connections.spawn(async move {
                        let _permit = permit;
                        server.converse(stream, &acceptor, clients).await;
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        // What is still open then is cut off, when the set is dropped.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
    }

    async fn converse(&self, stream: TcpStream, acceptor: &TlsAcceptor, clients: Arc<ClientCertificates>) {
        let limits = self.state.limits;
        // Small answers should not wait for more to come.
        let _ = stream.set_nodelay(true);
        let accepted = acceptor.accept(Lingering::new(stream));
        let Ok(Ok(stream)) = tokio::time::timeout(limits.handshake, accepted).await else {
            return;
        };
        let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
        let router = self.router();
        let (under_way, idle) = watch::channel(0_usize);
        let under_way = Arc::new(under_way);
        let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            // A connection can outlive the certificate that it was made with.
            request.extensions_mut().insert(clients.judge(chain.as_deref(), UnixTime::now()));
            let (router, request_under_way) = (router.clone(), UnderWay::begin(&under_way));
            let (request, leftover) = leftover::keep(request);
            async move {
                let mut answer = router.oneshot(request).await?;
                if let Some(leftover) = leftover {
                    leftover.settle(&mut answer).await;
                }
                // An answer is given when all of it is.
                Ok::<_, Infallible>(answer.map(|body| request_under_way.until_the_end_of(body)))
            }
        });
        let builder = builder();
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            // The client went away, or spoke something else: there is nobody to tell.
            _ = connection.as_mut() => {}
            () = nothing_for(limits.idle, idle) => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(FAREWELL, connection).await;
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_LIMIT)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_LIMIT);
    builder.http1().max_buf_size(HEAD_LIMIT as usize);
    builder
}

/// A request that is answered, or its answer that is sent.
struct UnderWay(Arc<watch::Sender<usize>>);

impl UnderWay {
    fn begin(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }

    fn until_the_end_of(self, body: Body) -> Body {
        Body::new(body.map_err(move |error| {
            let _ = &self;
            error
        }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Waits until no request has been under way for some time, or begun. One whose head does not come to an end is none.
async fn nothing_for(limit: Duration, mut under_way: watch::Receiver<usize>) {
    loop {
        let is_idle = *under_way.borrow_and_update() == 0;
        let change = under_way.changed();
        let ended = if is_idle {
            match tokio::time::timeout(limit, change).await {
                Ok(changed) => changed.is_err(),
                Err(_) => true,
            }
        } else {
            change.await.is_err()
        };
        if ended {
            return;
        }
    }
}
