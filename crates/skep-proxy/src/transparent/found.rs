//! Servers that are said to speak streamable HTTP, and speak HTTP+SSE.
//!
//! One that refuses both a question of either era and a handshake, and not in words of the protocol, has no endpoint for
//! messages there. Whether it has a stream instead is found out once, and then it is served as if somebody had said so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use skep_mcp::Message;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};

use super::Transparent;
use super::dialled::{STREAM, STREAMABLE};
use super::target::Dialect;
use crate::answer::{self, Answer};
use crate::eras::dialled::Credentials;
use crate::eras::http::{HttpLine, is_no_endpoint};
use crate::listener::Peer;
use crate::sessions::Whose;

/// A server where no stream was found is not asked for one again and again.
const AGAIN: Duration = Duration::from_secs(10);

/// When a stream was last looked for in vain. Held while that goes on, so that it is looked for once.
#[derive(Debug, Default)]
pub(super) struct Search(tokio::sync::Mutex<()>, Mutex<Option<Instant>>);

impl Transparent {
    /// Answers a request that stands alone, for which a server opens no session on streamable HTTP.
    pub(super) async fn serve_unopened(
        &self,
        peer: Peer,
        parts: &Parts,
        line: HttpLine,
        message: Message,
        refusal: Answer,
    ) -> Result<Answer, Answer> {
        let status = refusal.status();
        if !is_no_endpoint(status) {
            return Ok(refusal);
        }
        if self.finds_stream(peer, parts).await? {
            let opener = Arc::new(self.dial(peer, parts)?);
            return self.open_and_serve(peer, line, opener, parts, message).await;
        }
        let told = format!(
            "there is no MCP server at this address: initialize is answered with {status}, and GET with no stream of \
             HTTP+SSE; hint: check the address of the server, its path included"
        );
        Err(answer::fault(StatusCode::BAD_GATEWAY, &Fault::new(INTERNAL_ERROR, told), message.owned_id().as_ref()))
    }

    /// Whether a server that has no endpoint for handshakes has a stream of HTTP+SSE: where the endpoint would be, or where
    /// servers of ours have theirs.
    pub(super) async fn finds_stream(&self, peer: Peer, parts: &Parts) -> Result<bool, Answer> {
        if self.target.dialect != Dialect::Streamable {
            return Ok(false);
        }
        let begun = Instant::now();
        // Held while the server is asked on purpose: whoever waits here finds out what the first one did.
        let _searching = self.search.0.lock().await;
        if self.dialled.found().is_some() {
            return Ok(true);
        }
        if self.search.1.lock().is_some_and(|since| since > begun || since.elapsed() < AGAIN) {
            return Ok(false);
        }
        let path = self.target.path_and_query(Dialect::Streamable, &Method::GET, &parts.uri);
        let usual = path.iter().filter(|path| path.path() == STREAMABLE && !self.target.is_remote).map(|_| STREAM);
        let usual: Vec<_> = usual.collect();
        let (whose, line) = (Whose::of(parts, peer), self.line(peer, parts)?);
        let credentials = Credentials::new(line.headers().clone(), parts.extensions.get().cloned());
        for stream in path.into_iter().chain(usual).filter_map(|path| self.target.at(path)) {
            if self.dialled.find(&whose, &stream, &credentials).await {
                tracing::info!(path = stream.path(), "the MCP server speaks HTTP+SSE, and is talked to so");
                return Ok(true);
            }
        }
        *self.search.1.lock() = Some(Instant::now());
        Ok(false)
    }
}
