//! From a name to the addresses that may be dialled. Exactly these are dialled: nobody is asked a second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use skep_bounds::address::{is_barred, is_private};
use tower_service::Service;

/// A name, or an address, that leads where requests must not go.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{host} is at a private, link-local or reserved address")]
pub(crate) struct Closed {
    host: String,
    /// Whether nobody could allow it.
    pub(crate) is_barred: bool,
}

impl Closed {
    /// The one that caused a failure, if one did.
    pub(crate) fn within<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
    }
}

/// Says which addresses must not be dialled.
pub(super) type Judge = fn(IpAddr) -> bool;

/// Finds the addresses of a name.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// What is outside for some tests, and its name.
#[cfg(test)]
pub(crate) const OUTSIDE: &str = "127.0.0.99";
#[cfg(test)]
pub(crate) const OUTSIDE_NAME: &str = "outside.example";

/// Asks the system.
pub(super) fn system() -> Lookup {
    Arc::new(|name| async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) }.boxed())
}

/// Finds the addresses of a name, and drops what must not be dialled.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub(super) is_closed: Judge,
    pub(super) lookup: Lookup,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Resolver")
    }
}

impl Resolver {
    /// One that finds what is for everybody, and addresses of this machine and its networks only if they are allowed.
    pub(crate) fn new(allows_private: bool) -> Self {
        Self { is_closed: if allows_private { is_barred } else { is_private }, lookup: system() }
    }

    /// One that finds whatever there is.
    pub(crate) fn open() -> Self {
        Self { is_closed: |_| false, lookup: system() }
    }

    /// The same, for whom all names are at these places, one after the other; the last one stays.
    #[cfg(test)]
    pub(crate) fn finding(self, places: Vec<SocketAddr>) -> Self {
        let turn = std::sync::atomic::AtomicUsize::new(0);
        let lookup: Lookup = Arc::new(move |_| {
            let turn = turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let found = places.get(turn).or(places.last()).copied().into_iter().collect();
            Box::pin(std::future::ready(Ok(found)))
        });
        Self { lookup, ..self }
    }

    /// One for whom a name and an address of this machine are outside, whatever the others are.
    #[cfg(test)]
    pub(crate) fn from_outside(outside: SocketAddr) -> Self {
        let others = system();
        let lookup: Lookup = Arc::new(move |name| match name.as_str() {
            OUTSIDE_NAME => Box::pin(std::future::ready(Ok(vec![outside]))),
            _ => others(name),
        });
        Self { is_closed: |address| address.to_string() != OUTSIDE && is_private(address), lookup }
    }

    /// Refuses a host that is written as an address, which is dialled without asking anybody.
    pub(crate) fn check(&self, host: &str) -> Result<(), Closed> {
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) if (self.is_closed)(address) => {
                Err(Closed { host: host.to_owned(), is_barred: is_barred(address) })
            }
            _ => Ok(()),
        }
    }
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
            let is_barred = found.iter().all(|address| is_barred(address.ip()));
            found.retain(|address| !is_closed(address.ip()));
            if found.is_empty() {
                return Err(Closed { host: name.as_str().to_owned(), is_barred }.into());
            }
            Ok(found.into_iter())
        }
        .boxed()
    }
}
