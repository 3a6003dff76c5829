//! Turns what must never happen into an answer.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::exchange::Exchange;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;

/// It stands around everything, and once more around what is behind the chain, so that the layers see an answer.
#[derive(Debug)]
pub(super) struct Recovery;

impl Layer for Recovery {
    fn pass<'a>(&'a self, exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            // Nothing of the request is used after it.
            AssertUnwindSafe(next.pass(exchange)).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("a request made the proxy panic; this is a defect of the proxy");
                Refusal::Panicked.answer(None)
            })
        })
    }
}
