//! Before there is a proxy: whoever asks is told that something is there, and everybody else to come back.

use std::io;
use std::sync::Arc;

use http::Request;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::answer::{self, Answer};
use crate::health::{self, Health};
use crate::limits::Limits;
use crate::listener::{self, Coming, Peer, Service};
use crate::tls::TlsIdentity;
use crate::transparent::Dialect;

/// What is told until there is more to tell.
const REASON: &str = "the proxy is starting";

/// Answers at an address while what will answer there is made ready. Gives the listener back with what was made.
pub async fn answer_until<T>(
    listener: TcpListener,
    dialect: Dialect,
    tls: Option<&TlsIdentity>,
    limits: &Limits,
    ready: impl Future<Output = T>,
) -> io::Result<(TcpListener, T)> {
    // Both are the same socket, so that no client is turned away when one takes the place of the other.
    let listener = listener.into_std()?;
    let early = TcpListener::from_std(listener.try_clone()?)?;
    let stop = CancellationToken::new();
    let accepting = listener::accept(early, tls, Arc::new(Early(dialect)), limits, stop.clone());
    let making = async {
        let made = ready.await;
        stop.cancel();
        made
    };
    let (open, made) = tokio::join!(accepting, making);
    // Nobody who comes now waits for somebody who has not even said what it wants. It ends by itself.
    tokio::spawn(open.end(limits.drain));
    Ok((TcpListener::from_std(listener)?, made))
}

#[derive(Debug)]
struct Early(Dialect);

impl Service for Early {
    async fn answer(&self, _: Peer, request: Request<Coming>) -> Answer {
        if request.uri().path() == "/health" {
            let health = Health { transport: self.0.name(), server: Some(Err(REASON.to_owned())), era: None };
            return health::answer(request.method(), &health);
        }
        answer::not_ready(REASON)
    }
}
