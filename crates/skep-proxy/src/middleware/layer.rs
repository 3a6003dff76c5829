//! What a chain is made of.

use futures::future::BoxFuture;

use super::exchange::Exchange;
use crate::answer::Answer;

/// One concern. It may refuse a request, change it on its way in and its answer on its way out.
pub(crate) trait Layer: std::fmt::Debug + Send + Sync {
    /// Answers a request, as a rule with the help of those behind it.
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer>;
}

/// Where requests go that have passed the chain.
pub(crate) trait Destination: Send + Sync {
    /// Answers a request.
    fn answer<'a>(&'a self, exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer>;

    /// Whether a server gets requests of every verb and address, and not only what the protocol has.
    fn passes_everything(&self) -> bool {
        true
    }
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

    /// Whether a server gets requests of every verb and address, and not only what the protocol has.
    pub(super) fn passes_everything(self) -> bool {
        self.destination.passes_everything()
    }

    /// Hands a request on.
    pub(crate) fn pass(self, mut exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        if let Some((layer, layers)) = self.layers.split_first() {
            return layer.pass(exchange, Next { layers, ..self });
        }
        exchange.introduce();
        self.destination.answer(exchange)
    }
}
