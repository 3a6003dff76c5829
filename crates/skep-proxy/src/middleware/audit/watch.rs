//! Looks at an answer as it passes, and lets it pass as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http::StatusCode;
use http_body::Body as _;

use super::event::Pending;
use super::settings::AuditSettings;
use crate::answer::Answer;
use crate::body::{Body, BodyError};

/// So much of an answer is looked at for errors.
const LOOKED_AT: usize = 1 << 20;

/// The answer, with its end recorded.
pub(super) fn watched(answer: Answer, pending: Pending, settings: &AuditSettings) -> Answer {
    let looks = settings.has_answers || (settings.detects_errors && answer.status().is_success());
    if let Body::Full(text) = answer.body() {
        pending.end(answer.status(), text, text.len());
        return answer;
    }
    if !looks {
        pending.end(answer.status(), &[], 0);
        return answer;
    }
    let status = answer.status();
    answer.map(|body| Body::stream(Watched { body, status, seen: Vec::new(), size: 0, pending: Some(pending) }))
}

/// A body, and what was seen of it.
struct Watched {
    body: Body,
    status: StatusCode,
    seen: Vec<u8>,
    size: usize,
    pending: Option<Pending>,
}

impl Watched {
    fn end(&mut self) {
        if let Some(pending) = self.pending.take() {
            pending.end(self.status, &self.seen, self.size);
        }
    }
}

impl Stream for Watched {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                self.end();
                return Poll::Ready(None);
            };
            match frame {
                Err(error) => return Poll::Ready(Some(Err(error))),
                Ok(frame) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.size += data.len();
                    let room = LOOKED_AT.saturating_sub(self.seen.len()).min(data.len());
                    self.seen.extend_from_slice(&data[..room]);
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}

/// A client that goes away ends it, too.
impl Drop for Watched {
    fn drop(&mut self) {
        self.end();
    }
}
