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

/// Does something with a request whose body is read. Most of the time somebody has read it before, and nobody has to wait.
pub(super) fn with_body<'a>(
    mut exchange: Box<Exchange<'a>>,
    go_on: impl FnOnce(Box<Exchange<'a>>) -> BoxFuture<'a, Answer> + Send + 'a,
) -> BoxFuture<'a, Answer> {
    if exchange.is_read() {
        return go_on(exchange);
    }
    Box::pin(async move {
        match exchange.receive().await {
            Ok(()) => go_on(exchange).await,
            Err(refusal) => refusal,
        }
    })
}

/// The end of a request that does not go on.
pub(super) fn refused<'a>(refusal: Answer) -> BoxFuture<'a, Answer> {
    Box::pin(std::future::ready(refusal))
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
