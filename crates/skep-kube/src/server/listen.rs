//! The server on a network: TLS, client certificates, limits, and an orderly end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::connections::{Connections, Place};
use super::linger::Lingering;
use super::{Server, leftover};
use crate::auth::identity::Certificate;
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
        let room = Connections::new(self.state.limits.connections);
        let mut connections = tokio::task::JoinSet::new();
        tokio::pin!(stop);
        loop {
            let next = async {
                let (stream, _) = listener.accept().await?;
                std::io::Result::Ok((stream, room.place().await))
            };
            let accepted = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            while connections.try_join_next().is_some() {}
            if let Ok((stream, place)) = accepted {
                let (server, acceptor, clients) = (self.clone(), acceptor.clone(), clients.clone());
                connections.spawn(async move { server.converse(stream, place, &acceptor, clients).await });
            } else {
                room.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        drop(listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        // What is still open then is cut off, when the set is dropped.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
    }

    async fn converse(
        &self,
        stream: TcpStream,
        place: Place,
        acceptor: &TlsAcceptor,
        clients: Arc<ClientCertificates>,
    ) {
        let limits = self.state.limits;
        // Small answers should not wait for more to come.
        let _ = stream.set_nodelay(true);
        let accepted = acceptor.accept(Lingering::new(stream));
        let seat = place.seat().clone();
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(limits.handshake, accepted) => accepted,
            () = seat.is_asked_to_leave() => return,
        };
        let Ok(Ok(stream)) = accepted else { return };
        let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
        if let Certificate::Good(_) = clients.judge(chain.as_deref(), UnixTime::now()) {
            seat.recognise();
        }
        let router = self.router();
        let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            // A connection can outlive the certificate that it was made with.
            request.extensions_mut().insert(clients.judge(chain.as_deref(), UnixTime::now()));
            request.extensions_mut().insert(place.seat().clone());
            let (router, under_way) = (router.clone(), place.begin());
            let (request, leftover) = leftover::keep(request);
            async move {
                let mut answer = router.oneshot(request).await?;
                if let Some(leftover) = leftover {
                    leftover.settle(&mut answer).await;
                }
                // An answer is given when all of it is.
                Ok::<_, Infallible>(answer.map(|body| under_way.until_the_end_of(body)))
            }
        });
        let builder = builder();
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            // The client went away, or spoke something else: there is nobody to tell.
            _ = connection.as_mut() => return,
            () = seat.is_quiet_for(limits.idle) => {}
            // A stranger could take long to leave, and others come in at once.
            () = seat.is_asked_to_leave() => if !seat.is_known() { return },
        }
        connection.as_mut().graceful_shutdown();
        // A request may have begun in the last moment.
        let farewell = async {
            tokio::time::sleep(FAREWELL).await;
            seat.is_quiet_for(Duration::ZERO).await;
        };
        tokio::select! {
            _ = connection => {}
            () = farewell => {}
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
