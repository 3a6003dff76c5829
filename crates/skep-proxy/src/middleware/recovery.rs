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
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            // Nothing of the request is used after it.
            AssertUnwindSafe(async move { next.pass(exchange).await }).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("a request made the proxy panic; this is a defect of the proxy");
                Refusal::Panicked.answer(None)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, StatusCode};
    use http_body_util::{BodyExt as _, Empty};
    use hyper::body::Bytes;
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use serde_json::Value;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::answer;
    use crate::limits::Limits;
    use crate::listener::{self, Coming, Peer, Service};
    use crate::middleware::layer::Destination;
    use crate::middleware::{Audit, AuditSettings, Chain, Step};

    /// A layer with a defect.
    #[derive(Debug)]
    struct Defective;

    impl Layer for Defective {
        fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
            assert_ne!(exchange.parts.uri.path(), "/at-once", "a defect");
            Box::pin(async move {
                assert_ne!(exchange.parts.uri.path(), "/later", "a defect");
                next.pass(exchange).await
            })
        }
    }

    /// What is behind the chain.
    struct Well;

    impl Destination for Well {
        fn answer<'a>(&'a self, _exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
            Box::pin(async { answer::empty(StatusCode::NO_CONTENT) })
        }
    }

    struct Served(Chain);

    impl Service for Served {
        async fn answer(&self, peer: Peer, request: Request<Coming>) -> Answer {
            self.0.answer(peer, request, &Limits::default(), &Well).await
        }
    }

    #[tokio::test]
    async fn a_layer_that_panics_costs_one_request_and_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        for has_inner in [false, true] {
            let audit = Audit::new(AuditSettings { file: Some(file.clone()), ..AuditSettings::default() }).unwrap();
            let mut chain = Chain::new(vec![Step::Audit(audit)]);
            if has_inner {
                chain.layers.push(Box::new(Recovery));
            }
            chain.layers.push(Box::new(Defective));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let stop = CancellationToken::new();
            let (served, stopping) = (Arc::new(Served(chain)), stop.clone());
            let serving =
                tokio::spawn(
                    async move { listener::serve(listener, None, served, &Limits::default(), stopping).await },
                );
            let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
            let (mut sender, connection) = http1::handshake(stream).await.unwrap();
            let connection = tokio::spawn(connection);
            // All of it on one connection, which is as good afterwards as it was before.
            for (path, status) in [("/at-once", 500), ("/well", 204), ("/later", 500), ("/well", 204)] {
                let request = Request::get(path).header("Host", "hive").body(Empty::<Bytes>::new()).unwrap();
                let answer = sender.send_request(request).await.unwrap();
                assert_eq!(answer.status().as_u16(), status, "{path}");
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body, if status == 500 { "Internal Server Error\n" } else { "" });
            }
            drop(sender);
            connection.await.unwrap().unwrap();
            stop.cancel();
            serving.await.unwrap();
        }
        let records = std::fs::read_to_string(file).unwrap();
        let outcomes: Vec<Value> =
            records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].take()).collect();
        assert_eq!(outcomes, ["error", "success", "error", "success"].repeat(2));
    }
}
