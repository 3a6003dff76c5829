//! Looks at an answer as it passes, and lets it pass as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http_body::Body as _;

use crate::body::{Body, BodyError};

/// Somebody who wants to know how an answer goes on.
pub(super) trait Watcher: Send + Unpin + 'static {
    /// A part of it passes.
    fn see(&mut self, part: &[u8]);

    /// It has ended. When a client goes away before that, or the server breaks off, the watcher is dropped without it.
    fn end(&mut self);
}

/// The body, with somebody who watches it.
pub(super) fn watched(body: Body, watcher: impl Watcher) -> Body {
    Body::stream(Watched { body, watcher, is_broken: false })
}

struct Watched<W> {
    body: Body,
    watcher: W,
    /// What has broken off has no end.
    is_broken: bool,
}

impl<W: Watcher> Stream for Watched<W> {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                if !self.is_broken {
                    self.watcher.end();
                }
                return Poll::Ready(None);
            };
            match frame {
                Err(error) => {
                    self.is_broken = true;
                    return Poll::Ready(Some(Err(error)));
                }
                Ok(frame) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.watcher.see(&data);
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}
