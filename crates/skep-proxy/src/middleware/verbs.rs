//! What may pass besides messages, where messages are decided about.
//!
//! Whoever decides goes by bodies, and a server that speaks HTTP itself may have pages that need none. So what is no `POST`
//! passes only as far as the transports of the protocol need it: a stream that is opened, and a session that is ended.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Uri};
use skep_mcp::header;

use super::exchange::Exchange;
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;
use crate::eras::http::is_stream;

/// Letters of an address that are logged.
const LONGEST_PATH: usize = 256;

/// Lets nothing else pass. It stands before the first step that decides by messages.
#[derive(Debug)]
pub(super) struct Verbs;

/// Says with a request that it may do nothing but end the session that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndsSession;

impl EndsSession {
    /// The answer to one that would do something else.
    pub(crate) fn refuse(path: &str) -> Answer {
        let reason = "it ends no session there";
        tracing::info!(path = ?brief(path), reason, "a request is refused");
        Refusal::Unauthorized.answer(None)
    }
}

/// The beginning of an address.
fn brief(path: &str) -> String {
    path.chars().take(LONGEST_PATH).collect()
}

impl Layer for Verbs {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let method = exchange.parts.method.clone();
        if method == Method::POST || !next.passes_everything() {
            return next.pass(exchange);
        }
        let notes = exchange.notes().clone();
        let refuse = move |method: &Method, uri: &Uri, reason: &str| {
            let subject = notes.identity().map(|identity| identity.subject.as_str());
            tracing::info!(subject, %method, path = ?brief(uri.path()), reason, "a request is refused");
            notes.deny();
            Refusal::Unauthorized.answer(None)
        };
        if method == Method::DELETE && exchange.parts.headers.contains_key(header::SESSION_ID) {
            exchange.parts.extensions.insert(EndsSession);
            return next.pass(exchange);
        }
        let uri = exchange.parts.uri.clone();
        if method != Method::GET {
            let refused = refuse(&method, &uri, "no policy can permit what is no message");
            return std::future::ready(refused).boxed();
        }
        async move {
            let answer = next.pass(exchange).await;
            let status = answer.status();
            let is_refusal = status.is_client_error() || status.is_server_error();
            if is_refusal || status.is_success() && is_stream(answer.headers()) {
                return answer;
            }
            refuse(&method, &uri, "its answer is no stream of events")
        }
        .boxed()
    }
}
