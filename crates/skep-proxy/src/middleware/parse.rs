//! Looks into the message before the layers behind, so that the layers around know what it was about.

use futures::future::BoxFuture;
use http::Method;

use super::exchange::Exchange;
use super::layer::{Layer, Next};
use crate::answer::Answer;
use crate::intake;

/// It looks at what calls itself JSON. Whatever else comes is the affair of the transport.
#[derive(Debug)]
pub(super) struct Parse;

impl Layer for Parse {
    fn pass<'a>(&'a self, mut exchange: Exchange<'a>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let parts = &exchange.parts;
            let is_message = parts.method == Method::POST
                && intake::require_json(&parts.headers).is_ok()
                && !parts.uri.path().ends_with("/sse");
            if is_message && let Err(refusal) = exchange.payload().await {
                return refusal;
            }
            next.pass(exchange).await
        })
    }
}
