//! What is left of a request's body when the answer is there already.
//!
//! Over HTTP/1.1 the next request stands behind the body. So a rest that is small is read and forgotten; with a larger
//! one the connection ends, and the answer says so.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

/// A rest of this size is read, as by the real server.
const READ_AND_FORGOTTEN: usize = 256 * 1024;
/// And it must come within this time.
const PATIENCE: Duration = Duration::from_millis(500);

/// The rest of a body, once nobody reads it any more.
pub struct Leftover {
    slot: Arc<Mutex<Option<Incoming>>>,
    /// The client waits for a word before it sends the body.
    is_asked_for: bool,
}

/// The request, and what will be left of it. Only HTTP/1.1 has one thing stand behind the other.
pub fn keep(request: Request<Incoming>) -> (Request<Body>, Option<Leftover>) {
    if request.version() > Version::HTTP_11 || request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let slot = Arc::new(Mutex::new(None));
    let is_asked_for = request.headers().contains_key(EXPECT);
    let lent = |body| Body::new(Lent { body: Some(body), slot: slot.clone() });
    (request.map(lent), Some(Leftover { slot: slot.clone(), is_asked_for }))
}

impl Leftover {
    /// Does away with the rest, or tells the client that the connection ends with this answer.
    pub async fn settle(self, answer: &mut Response<Body>) {
        let rest = self.slot.lock().take();
        let Some(rest) = rest else { return };
        if self.is_asked_for || !is_soon_at_its_end(rest).await {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

async fn is_soon_at_its_end(mut rest: Incoming) -> bool {
    let read = async {
        let mut size = 0;
        while let Some(frame) = rest.frame().await {
            size += frame.ok()?.data_ref().map_or(0, Bytes::len);
            if size > READ_AND_FORGOTTEN {
                return None;
            }
        }
        Some(())
    };
    matches!(tokio::time::timeout(PATIENCE, read).await, Ok(Some(())))
}

/// A body that is given back when it is dropped before its end.
struct Lent {
    body: Option<Incoming>,
    slot: Arc<Mutex<Option<Incoming>>>,
}

impl http_body::Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(http_body::Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.slot.lock() = self.body.take().filter(|body| !body.is_end_stream());
    }
}
