//! The reading side of a stream.

use std::sync::Arc;

use bytes::Bytes;
use skep_mcp::sse;

use super::EventStream;
use crate::budget::SMALL;
use crate::limits;

/// Whoever reads a stream. One that another has taken over from finds that the stream is over.
pub(super) struct Reader {
    pub(super) stream: Arc<EventStream>,
    pub(super) number: u64,
    /// The event to read next.
    pub(super) next: u64,
}

impl Reader {
    /// The next event, as it is written. An idle stream shows that it is alive.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let stream = Arc::clone(&self.stream);
        loop {
            let changed = stream.changed.notified();
            match self.look() {
                Look::Event(number, data) => return Some(stream.render(number, &data)),
                Look::Over => return None,
                Look::Later => {}
            }
            if tokio::time::timeout(limits::KEEP_ALIVE, changed).await.is_err() {
                return Some(sse::comment("keep-alive").into());
            }
        }
    }

    /// The next message.
    pub(super) async fn next_message(&mut self) -> Option<Bytes> {
        let stream = Arc::clone(&self.stream);
        loop {
            let changed = stream.changed.notified();
            match self.look() {
                Look::Event(_, data) => return Some(data),
                Look::Over => return None,
                Look::Later => changed.await,
            }
        }
    }

    fn look(&mut self) -> Look {
        let mut log = self.stream.log.lock();
        if log.reader != self.number {
            return Look::Over;
        }
        // Events are numbered without gaps.
        let oldest = log.events.front().map_or(log.next, |event| event.number);
        let index = usize::try_from(self.next.saturating_sub(oldest)).unwrap_or(usize::MAX);
        let Some(event) = log.events.get(index) else {
            return if log.end.is_some() { Look::Over } else { Look::Later };
        };
        let (number, data) = (event.number, event.data.clone());
        self.next = number + 1;
        let is_first = log.delivered < self.next;
        log.delivered = log.delivered.max(self.next);
        if is_first
            && data.len() > SMALL
            && let Some(keeper) = self.stream.keeper.upgrade()
        {
            log.keep(index, keeper.copy(&data));
        }
        log.trim();
        Look::Event(number, data)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut log = self.stream.log.lock();
        // Another one may have taken over.
        let is_left = log.reader == self.number;
        if is_left {
            log.is_open = false;
        }
        drop(log);
        if is_left {
            self.stream.tidy_up();
        }
    }
}

enum Look {
    Event(u64, Bytes),
    Later,
    Over,
}
