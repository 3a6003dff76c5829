//! Asks the server now and then whether it is alive.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method};
use skep_mcp::{Revision, header, method};

use super::Transparent;
use super::upstream::Outgoing;
use crate::eras::verdict::{self, Verdict};

/// How often a server is asked, and how long it may be silent.
#[derive(Debug, Clone)]
pub struct Probing {
    /// Between two questions to a server that answers.
    pub interval: Duration,
    /// How long it may take for an answer.
    pub patience: Duration,
    /// Between two questions to one that does not.
    pub retry: Duration,
    /// After so many questions without an answer it is given up.
    pub failures: u32,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            patience: Duration::from_secs(5),
            retry: Duration::from_secs(5),
            failures: 5,
        }
    }
}

impl Transparent {
    /// Asks the server until it is given up. It is left alone until the first client has got an answer from it.
    pub(super) async fn watch(&self, probing: &Probing) {
        self.served.cancelled().await;
        let mut failures = 0;
        loop {
            tokio::time::sleep(if failures == 0 { probing.interval } else { probing.retry }).await;
            match self.probe(probing.patience).await {
                Ok(_) => failures = 0,
                Err(problem) => {
                    failures += 1;
                    tracing::warn!(problem, failures, "the MCP server does not answer");
                }
            }
            if failures >= probing.failures.max(1) {
                return;
            }
        }
    }

    /// How long the server took to answer. Any answer will do that is not the server's own failure.
    pub(super) async fn probe(&self, patience: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        let question = self.question().ok_or("the server has no address")?;
        match tokio::time::timeout(patience, self.upstream.send_once(&question)).await {
            Err(_) => Err(format!("no answer within {} s", patience.as_secs_f64())),
            Ok(Err(_)) => Err("it cannot be reached".to_owned()),
            Ok(Ok(response)) if response.status().is_server_error() => Err(format!("it answers {}", response.status())),
            Ok(Ok(_)) => Ok(begun.elapsed()),
        }
    }

    fn question(&self) -> Option<Outgoing> {
        let uri = self.target.at(http::uri::PathAndQuery::from_static("/"))?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(self.target.authority.as_str()).ok()?);
        if !self.is_stateless {
            return Some(Outgoing { method: Method::GET, uri, headers, body: Bytes::new(), signer: None });
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let mut body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"ping","params":{}}"#);
        if self.bridging.eras.known() == Some(Verdict::Modern) {
            // It has no such method.
            let question = verdict::question();
            headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static(Revision::July2026.text()));
            headers.insert(header::METHOD, HeaderValue::from_static(method::DISCOVER));
            body = question.text().clone();
        }
        Some(Outgoing { method: Method::POST, uri, headers, body, signer: None })
    }
}
