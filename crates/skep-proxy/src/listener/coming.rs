//! The body of a request while it comes. One that nobody wants any more is let run out for a while: a connection that ends
//! with something unread takes the answer with it, and a client that writes all before it reads would never see why it was
//! refused.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::activity::UnderWay;

/// How long something unwanted may come, and how many bytes of it beyond those that a body may have.
const LINGERING: Duration = Duration::from_secs(2);
const LINGERING_BYTES: usize = 8 << 20;

/// A body that has not come to its end.
#[derive(Debug)]
pub(crate) struct Coming(Option<Rest>);

/// What is left of it.
#[derive(Debug)]
struct Rest {
    body: Incoming,
    /// How much of it may still come when nobody wants it.
    unwanted: usize,
    /// Whether the client sends nothing before it is told to. Reading on would tell it to.
    is_withheld: bool,
    _under_way: UnderWay,
}

impl Coming {
    /// A body of which a reader takes at most so many bytes.
    pub(super) fn new(body: Incoming, largest: usize, is_withheld: bool, under_way: UnderWay) -> Self {
        let unwanted = largest.saturating_add(LINGERING_BYTES);
        let rest = Rest { body, unwanted, is_withheld, _under_way: under_way };
        Self(Some(rest).filter(|rest| !rest.body.is_end_stream()))
    }
}

impl Body for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(rest) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut rest.body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|rest| rest.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |rest| rest.body.size_hint())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let rest = self.0.take().filter(|rest| !rest.is_withheld && !rest.body.is_end_stream());
        if let Some((rest, runtime)) = rest.zip(tokio::runtime::Handle::try_current().ok()) {
            // It ends with its connection, if not before.
            runtime.spawn(tokio::time::timeout(LINGERING, rest.run_out()));
        }
    }
}

impl Rest {
    /// Takes what comes and keeps nothing of it.
    async fn run_out(mut self) {
        while let Some(Ok(frame)) = self.body.frame().await {
            self.unwanted = self.unwanted.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if self.unwanted == 0 || self.body.is_end_stream() {
                return;
            }
        }
    }
}
