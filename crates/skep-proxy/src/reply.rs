//! An answer that is under way, in the form that its client takes: in one piece, or as a stream that may be lost.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use skep_mcp::era::Era;
use skep_mcp::fault::{
    HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, UNSUPPORTED_REVISION,
};

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::intake::Accepts;
use crate::limits;
use crate::stdio::clients::Client;
use crate::stdio::events::{End, EventStream};

/// What whoever still waits is told when the proxy stops.
pub(crate) const STOPPING: &str = "the proxy is stopping; whether the MCP server did what was asked is unknown";

/// Where an answer goes.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) accepts: Accepts,
    pub(crate) era: Era,
    /// The session, whose client may come back for the answer.
    pub(crate) client: Option<Arc<Client>>,
}

impl Reply {
    /// The stream that an answer is written to.
    pub(crate) fn stream(&self) -> Arc<EventStream> {
        match &self.client {
            Some(client) if self.accepts.events => client.stream(),
            _ => EventStream::new(0, false),
        }
    }

    /// Answers with what is written to a stream. `held` is dropped when the client goes, unless it may come back: then
    /// it is given to `keep`.
    pub(crate) async fn give<H: Send + 'static>(
        self,
        stream: &Arc<EventStream>,
        held: H,
        keep: impl FnOnce(H),
    ) -> Answer {
        if !self.accepts.events {
            let (end, text) = stream.outcome().await;
            return plain(self.era, end, text);
        }
        let patience = match self.era {
            Era::Modern => limits::STATUS_DELAY,
            Era::Legacy => limits::HEAD_DELAY,
        };
        let is_over = tokio::time::timeout(patience, stream.whole_or_begun()).await;
        if let Ok(Some(events)) = is_over {
            // A request that stands alone is answered with the status of its answer; a stream could not say it.
            return match (self.era, self.accepts.json) {
                (Era::Modern, true) => {
                    let (end, text) = stream.outcome().await;
                    plain(self.era, end, text)
                }
                _ => answer::events(Body::Full(events)),
            };
        }
        let Some(client) = self.client else {
            // When the client goes, the request goes with it.
            return answer::events(stream.read(held));
        };
        if client.revision().has_priming_events() {
            stream.prime();
        }
        // The request goes on without the client, which may come back for the answer.
        keep(held);
        client.remember(stream);
        answer::events(stream.read(()))
    }
}

/// An answer that is known already, in the form that the client prefers.
pub(crate) fn whole(accepts: Accepts, text: Bytes) -> Answer {
    if !accepts.events {
        return answer::json(StatusCode::OK, text);
    }
    let frame = skep_mcp::sse::Frame { name: Some("message"), data: &text, ..Default::default() };
    answer::events(Body::Full(frame.encode().into()))
}

/// An answer that is no stream.
pub(crate) fn plain(era: Era, end: End, text: Bytes) -> Answer {
    match end {
        End::TimedOut => answer::text(StatusCode::GATEWAY_TIMEOUT, "Timeout waiting for response from container"),
        End::Stopped => answer::text(StatusCode::GATEWAY_TIMEOUT, STOPPING),
        End::Lost | End::Closed => answer::text(StatusCode::INTERNAL_SERVER_ERROR, "Failed to process request"),
        End::Refused(code) if era == Era::Modern => answer::json(status(code), text),
        End::Answered | End::Refused(_) => answer::json(StatusCode::OK, text),
    }
}

/// The status of an error that the server answered a request with that stands alone.
pub(crate) fn status(code: i64) -> StatusCode {
    match code {
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_REVISION | PARSE_ERROR | INVALID_REQUEST => {
            StatusCode::BAD_REQUEST
        }
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
