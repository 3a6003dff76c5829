//! What a chain is made of.

use futures::future::BoxFuture;
use http::Request;

use super::exchange::Exchange;
use crate::answer::Answer;
use crate::listener::Peer;
use crate::upload::Upload;

/// One concern. It may refuse a request, change it on its way in and its answer on its way out.
pub(crate) trait Layer: std::fmt::Debug + Send + Sync {
    /// Answers a request, as a rule with the help of those behind it.
    fn pass<'a>(&'a self, exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer>;
}

/// Where requests go that have passed the chain.
pub(crate) trait Destination: Send + Sync {
    /// Answers a request.
    fn answer(&self, peer: Peer, request: Request<Upload>) -> BoxFuture<'_, Answer>;
}

/// What is behind a layer.
#[derive(Clone, Copy)]
pub(crate) struct Next<'a> {
    layers: &'a [Box<dyn Layer>],
    destination: &'a dyn Destination,
}

impl<'a> Next<'a> {
    pub(super) fn new(layers: &'a [Box<dyn Layer>], destination: &'a dyn Destination) -> Self {
        Self { layers, destination }
    }

    /// Hands a request on.
    pub(crate) fn pass(self, exchange: Exchange<'a>) -> BoxFuture<'a, Answer> {
        if let Some((layer, layers)) = self.layers.split_first() {
            return layer.pass(exchange, Next { layers, ..self });
        }
        let (peer, request) = exchange.into_request();
        self.destination.answer(peer, request)
    }
}
