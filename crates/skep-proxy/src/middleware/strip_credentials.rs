//! Keeps what a client proves itself with from the server.

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};

use super::exchange::Exchange;
use super::layer::{Layer, Next};
use crate::answer::Answer;

/// Behind authentication, which needs it.
#[derive(Debug)]
pub(super) struct StripCredentials;

impl Layer for StripCredentials {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
            exchange.parts.headers.remove(name);
        }
        next.pass(exchange)
    }
}
