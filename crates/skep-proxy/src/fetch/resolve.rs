//! From a name to the addresses that may be dialled. Exactly these are dialled: nobody is asked a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// A name, or an address, that leads where requests must not go.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0} is at a private, link-local or reserved address")]
pub(super) struct Closed(pub(super) String);

/// Says which addresses must not be dialled.
pub(super) type Judge = fn(IpAddr) -> bool;

/// Finds the addresses of a name.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Asks the system.
pub(super) fn system() -> Lookup {
    Arc::new(|name| async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) }.boxed())
}

/// Finds the addresses of a name, and drops what must not be dialled.
#[derive(Clone)]
pub(super) struct Resolver {
    pub(super) is_closed: Judge,
    pub(super) lookup: Lookup,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Self::Response, Failure>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (is_closed, found) = (self.is_closed, (self.lookup)(name.as_str().to_owned()));
        async move {
            let mut found = found.await?;
            found.retain(|address| !is_closed(address.ip()));
            if found.is_empty() {
                return Err(Closed(name.as_str().to_owned()).into());
            }
            Ok(found.into_iter())
        }
        .boxed()
    }
}

/// Refuses a host that is written as an address, which is dialled without asking anybody.
pub(super) fn check_literal(host: &str, is_closed: Judge) -> Result<(), Closed> {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) if is_closed(address) => Err(Closed(host.to_owned())),
        _ => Ok(()),
    }
}
