//! Streams whose end nobody awaits. They would keep a proxy that stops for as long as it has patience, so they end with it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::eras::http::is_stream;

/// How often it is looked whether all answers have come, when the proxy stops.
const CHECK: Duration = Duration::from_millis(20);

/// Marks an answer that goes on until somebody ends it.
#[derive(Clone, Default)]
pub(crate) struct OpenEnded {
    /// Says whether answers are still to come on it, where they do.
    is_owed: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// What is said at the end.
    last: Option<Bytes>,
    /// What is let go of at the end.
    held: Option<Arc<dyn Send + Sync>>,
}

impl fmt::Debug for OpenEnded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenEnded").field("last", &self.last).finish_non_exhaustive()
    }
}

impl OpenEnded {
    /// A stream that answers come on, too. It waits for those that are still to come.
    pub(crate) fn with_answers(is_owed: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_owed: Some(Arc::new(is_owed)), ..Self::default() }
    }

    /// A stream of whole events that has a last one, and holds something while it is open.
    pub(crate) fn ending_with(last: impl Into<Bytes>, held: impl Send + Sync + 'static) -> Self {
        Self { last: Some(last.into()), held: Some(Arc::new(held)), ..Self::default() }
    }

    /// Marks an answer.
    pub(crate) fn mark(self, mut answer: Answer) -> Answer {
        answer.extensions_mut().insert(self);
        answer
    }

    /// Lets an answer that is marked end with the proxy.
    pub(crate) fn end_with(stop: &CancellationToken, mut answer: Answer) -> Answer {
        let Some(mut marked) = answer.extensions_mut().remove::<Self>() else { return answer };
        let headers = answer.headers_mut();
        if !is_stream(headers) {
            return answer;
        }
        headers.remove(CONTENT_LENGTH);
        if headers.contains_key(CONTENT_ENCODING) {
            // Whoever reads that could not read what is added.
            marked.last = None;
        }
        let stop = stop.clone();
        answer.map(|body| body.until(marked.end(stop)))
    }

    async fn end(self, stop: CancellationToken) -> Option<Bytes> {
        stop.cancelled().await;
        while self.is_owed.as_ref().is_some_and(|is_owed| is_owed()) {
            tokio::time::sleep(CHECK).await;
        }
        drop(self.held);
        self.last
    }
}
