//! The body of an answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _};
use http_body::{Frame, SizeHint};

use crate::transparent::upstream::FromServer;

/// Why a body ended before its end.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// What an answer carries.
pub enum Body {
    /// All of it, known beforehand.
    Full(Bytes),
    /// What a server behind the proxy sends, as it comes.
    FromServer(FromServer),
    /// What the proxy says as it goes.
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>),
}

impl Body {
    /// A body of parts that come one by one.
    pub(crate) fn stream(parts: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) -> Self {
        Self::Stream(Box::pin(parts))
    }

    /// The same body, which ends when `end` comes, and with what that has to say.
    pub(crate) fn until(self, end: impl Future<Output = Option<Bytes>> + Send + 'static) -> Self {
        let end = end.shared();
        let parts = self.parts().take_until(end.clone());
        // A body that ended by itself has said everything.
        let last = futures::stream::once(async move { end.peek().cloned().flatten() });
        Self::stream(parts.chain(last.filter_map(async |last| last.map(Ok))))
    }

    /// The same body with something before it.
    pub(crate) fn after(self, first: Bytes) -> Self {
        Self::stream(futures::stream::once(std::future::ready(Ok(first))).chain(self.parts()))
    }

    fn parts(self) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
        let frames = http_body_util::BodyStream::new(self);
        frames.filter_map(async |frame| frame.map(|frame| frame.into_data().ok()).transpose())
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Full(_) => "Full",
            Self::FromServer(_) => "FromServer",
            Self::Stream(_) => "Stream",
        })
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Full(Bytes::new())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::FromServer(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Stream(parts) => parts.as_mut().poll_next(context).map(|part| part.map(|part| part.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::FromServer(body) => body.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::FromServer(body) => body.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
