//! Looks into the message before the layers behind, so that the layers around know what it was about.

use futures::future::BoxFuture;

use super::exchange::Exchange;
use super::layer::{Layer, Next, refused, with_body};
use crate::answer::Answer;

/// It looks at every body, whatever verb, path and type it comes with: a server may do so, too.
#[derive(Debug)]
pub(super) struct Parse;

impl Layer for Parse {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        with_body(exchange, move |mut exchange| match exchange.parsed() {
            Ok(_) => next.pass(exchange),
            Err(refusal) => refused(refusal),
        })
    }
}
